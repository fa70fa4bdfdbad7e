/** With `respond-async`, the API answers at once, or waits up to 20 seconds for the memory to read a mask. */
const MAX_ANSWER_MS = 60_000;

/** Ends a request that starts a run on a dead connection. Its idempotency key makes the repeat safe. */
export const runLimit = () => AbortSignal.timeout(MAX_ANSWER_MS);
