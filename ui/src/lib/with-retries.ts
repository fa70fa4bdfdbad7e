import { ApiError, isProblem } from './api-client';
import { backoffMs, pause } from './pause';
import { ProviderUnavailable } from './provider-unavailable';

const DEFAULT_PAUSE_SECONDS = 10;
/** How often a call is repeated whose connection was lost while the browser was online. */
const MAX_LOSSES = 3;

/** What a call waits for. */
export type PauseCause = 'server' | 'network';

/**
 * Repeats a call while the server is busy (429, 503), the identity provider renews no token, or the network is down, and a few
 * times if the connection was lost: a change of the network, or a phone that slept. Rejects when the signal aborts.
 */
export async function withRetries<T>(
  signal: AbortSignal,
  onPause: (cause: PauseCause) => void,
  call: () => Promise<T>,
): Promise<T> {
  let losses = 0;
  let renewals = 0;
  for (;;) {
    signal.throwIfAborted();
    try {
      return await call();
    } catch (error) {
      if (isProblem(error, 429) || isProblem(error, 503)) {
        onPause('server');
        await pause((error.retryAfterSeconds ?? DEFAULT_PAUSE_SECONDS) * 1_000, signal);
      } else if ((isLoss(error) || error instanceof ProviderUnavailable) && !navigator.onLine) {
        onPause('network');
        await untilOnline(signal);
      } else if (error instanceof ProviderUnavailable) {
        // The call was not sent, and the next one would not be either: wait.
        onPause('server');
        await pause(backoffMs(error, renewals), signal);
        renewals += 1;
      } else if (isLoss(error) && losses < MAX_LOSSES) {
        onPause('network');
        await pause(backoffMs(error, losses), signal);
        losses += 1;
      } else {
        throw error;
      }
    }
  }
}

const isLoss = (error: unknown) =>
  error instanceof TypeError ||
  (error instanceof DOMException && error.name === 'TimeoutError') ||
  // The API says that it has lost an answer itself.
  (error instanceof ApiError && error.code === 'outcome_unknown');

/** Resolves when the network is back; rejects when the signal aborts. */
function untilOnline(signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
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
