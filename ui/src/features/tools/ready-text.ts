/** Announced to those who cannot see it happen. */
export const readyText = 'The result is ready';
