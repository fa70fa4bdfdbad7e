import { ApiError, MAX_ANSWER_MS } from '@/lib/api-client';

/** Ends a request that starts a run on a dead connection. Its idempotency key makes the repeat safe. */
export const runLimit = () => AbortSignal.timeout(MAX_ANSWER_MS);

/** Whether the API has refused a run. After any other error, the run may have started. */
export function isRunRefusal(error: unknown): error is ApiError {
  return (
    error instanceof ApiError &&
    error.code !== 'outcome_unknown' &&
    // Without a text, a proxy has answered.
    (error.status < 500 || error.detail !== '')
  );
}
