import { readEvents, type StreamEvent } from '@/lib/api-client';
import { pause } from '@/lib/pause';
import { connect } from './connect';

const FIRST_BACKOFF_MS = 500;
const MAX_BACKOFF_MS = 8_000;
/** The server sends something every 15 s. */
const MAX_SILENCE_MS = 40_000;

/** Calls `onEvent` with every event of the account until the signal aborts, and with null for each keep-alive. */
export async function followAccount(signal: AbortSignal, onEvent: (event: StreamEvent | null) => void) {
  let failures = 0;
  while (!signal.aborted) {
    const connection = connect(signal, MAX_SILENCE_MS);
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
