import { useSyncExternalStore } from 'react';

function subscribe(onChange: () => void) {
  window.addEventListener('online', onChange);
  window.addEventListener('offline', onChange);
  return () => {
    window.removeEventListener('online', onChange);
    window.removeEventListener('offline', onChange);
  };
}

/** When there is a network again; rejects when nobody waits for it any more. */
export function untilOnline(signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (navigator.onLine) return resolve();
    const over = new AbortController();
    const end = (settle: () => void) => () => {
      over.abort();
      settle();
    };
    window.addEventListener('online', end(resolve), { signal: over.signal });
    const giveUp = end(() => reject(signal.reason));
    signal.addEventListener('abort', giveUp, { signal: over.signal });
  });
}

/** False only when the browser is certain; true proves nothing. */
export function useOnline(): boolean {
  return useSyncExternalStore(subscribe, () => navigator.onLine);
}
