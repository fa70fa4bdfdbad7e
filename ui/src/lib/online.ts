import { useSyncExternalStore } from 'react';

function subscribe(onChange: () => void) {
  window.addEventListener('online', onChange);
  window.addEventListener('offline', onChange);
  return () => {
    window.removeEventListener('online', onChange);
    window.removeEventListener('offline', onChange);
  };
}

/** Resolves when the network is back; rejects when the signal aborts. */
export function untilOnline(signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (navigator.onLine) return resolve();
    const listeners = new AbortController();
    const end = (settle: () => void) => () => {
      listeners.abort();
      settle();
    };
    window.addEventListener('online', end(resolve), { signal: listeners.signal });
    const abort = end(() => reject(signal.reason));
    signal.addEventListener('abort', abort, { signal: listeners.signal });
  });
}

/** False if the browser is certainly offline. True does not prove a connection. */
export function useOnline(): boolean {
  return useSyncExternalStore(subscribe, () => navigator.onLine);
}
