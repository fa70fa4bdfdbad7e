const CHECK_MS = 3_000;

/** A connection that ends after too long a silence: after a phone slept, a dead connection never reports an error. */
export function connect(signal: AbortSignal, maxSilenceMs: number) {
  const stop = new AbortController();
  const abort = () => stop.abort();
  signal.addEventListener('abort', abort);
  let heardAt = Date.now();
  const timer = setInterval(() => Date.now() - heardAt > maxSilenceMs && abort(), CHECK_MS);
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
