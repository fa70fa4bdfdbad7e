import { vi } from 'vitest';

/** Lets the limits of this length pass in a moment. Fake timers do not reach them. */
export function shortenTimeout(length: number) {
  const { timeout } = AbortSignal;
  vi.spyOn(AbortSignal, 'timeout').mockImplementation((ms) => timeout(ms === length ? 50 : ms));
}
