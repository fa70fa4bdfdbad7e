/** Announced to screen readers. */
export const resultReady = 'The result is ready';
