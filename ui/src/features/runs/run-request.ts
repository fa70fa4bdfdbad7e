import { ApiError } from '@/lib/api-client';

/** The API answers at once, or waits up to 20 seconds for the memory to read a mask, which a slow phone has to send first. */
const MAX_ANSWER_MS = 120_000;

/** Ends a request that starts a run on a dead connection. Its idempotency key makes the repeat safe. */
export const runLimit = () => AbortSignal.timeout(MAX_ANSWER_MS);

/** Whether the API has refused a run. After any other error, the run may have started. */
export function isRefusal(error: unknown): error is ApiError {
  return (
    error instanceof ApiError &&
    error.code !== 'outcome_unknown' &&
    // Without a text, a proxy has answered.
    (error.status < 500 || error.detail !== '')
  );
}
