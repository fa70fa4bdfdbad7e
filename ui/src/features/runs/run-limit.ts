/** The API answers at once, or waits up to 20 seconds for the memory to read a mask, which a slow phone has to send first. */
const MAX_ANSWER_MS = 120_000;

/** Ends a request that starts a run on a dead connection. Its idempotency key makes the repeat safe. */
export const runLimit = () => AbortSignal.timeout(MAX_ANSWER_MS);
