import { readEvents, type StreamEvent } from '@/lib/api-client';
import { pause } from './pause';

const FIRST_BACKOFF_MS = 500;
const MAX_BACKOFF_MS = 8_000;
/** The server sends something every 15 s. A connection that slept with the phone never says that it is dead. */
const MAX_SILENCE_MS = 40_000;
const CHECK_MS = 3_000;

/** Calls `onEvent` with every event of the account until the signal aborts, and with null for each keep-alive. */
export async function followAccount(signal: AbortSignal, onEvent: (event: StreamEvent | null) => void) {
  let failures = 0;
  while (!signal.aborted) {
    const connection = connect(signal);
    try {
      for await (const event of readEvents(connection.signal)) {
        failures = 0;
        connection.heard();
        onEvent(event);
      }
    } catch {
      // The network, the server, or the renewal of the token: all of them come back.
    } finally {
      connection.end();
    }
    failures += 1;
    await pause(Math.min(MAX_BACKOFF_MS, FIRST_BACKOFF_MS * 2 ** (failures - 1)), signal);
  }
}

/** A connection that ends after too long a silence. */
function connect(signal: AbortSignal) {
  const stop = new AbortController();
  const abort = () => stop.abort();
  signal.addEventListener('abort', abort);
  let heardAt = Date.now();
  const timer = setInterval(() => Date.now() - heardAt > MAX_SILENCE_MS && abort(), CHECK_MS);
  return {
    signal: stop.signal,
    heard: () => {
      heardAt = Date.now();
    },
    end: () => {
      clearInterval(timer);
      signal.removeEventListener('abort', abort);
      abort();
    },
  };
}
