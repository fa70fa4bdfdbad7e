/** `Date` has whole seconds and is as old as its response: a smaller difference may be the network's. */
const SMALLEST_DIFFERENCE_MS = 10_000;

let aheadMs = 0;

/** Learns from the `Date` of a response how far the server's clock is ahead of this computer's. */
export function learnServerClock(date: string | null) {
  const difference = Date.parse(date ?? '') - Date.now();
  if (Number.isNaN(difference)) return;
  aheadMs = Math.abs(difference) < SMALLEST_DIFFERENCE_MS ? 0 : difference;
}

/** The server's time, in milliseconds since 1970, to compare with the times in its responses. */
export const serverNow = () => Date.now() + aheadMs;
