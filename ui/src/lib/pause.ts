import { ApiError } from './api-client';

const FIRST_BACKOFF_MS = 1_000;
const MAX_BACKOFF_MS = 30_000;

/** Returns how long to wait after a failure: as long as the server asks, or longer with each `earlier` failure in a row. */
export function backoffMs(error: unknown, earlier: number): number {
  const asked = error instanceof ApiError ? error.retryAfterSeconds : null;
  return asked ? asked * 1_000 : Math.min(MAX_BACKOFF_MS, FIRST_BACKOFF_MS * 2 ** earlier);
}

/** Resolves early when the signal aborts or the network returns. */
export function pause(ms: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    const listeners = new AbortController();
    const end = () => {
      clearTimeout(timer);
      listeners.abort();
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal.addEventListener('abort', end, { signal: listeners.signal });
    window.addEventListener('online', end, { signal: listeners.signal });
  });
}
