/** Returns a canvas whose pixels are read back, of at least one pixel. */
export function readableCanvas(width: number, height: number) {
  const canvas = document.createElement('canvas');
  canvas.width = Math.max(1, Math.round(width));
  canvas.height = Math.max(1, Math.round(height));
  const context = canvas.getContext('2d', { willReadFrequently: true });
  if (!context) throw new Error('This browser provides no 2D canvas');
  return { canvas, context };
}
