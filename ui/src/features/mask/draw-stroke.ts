import type { Stroke } from './marks';

type Canvas = Pick<
  CanvasRenderingContext2D,
  'lineCap' | 'lineJoin' | 'lineWidth' | 'beginPath' | 'moveTo' | 'lineTo' | 'stroke'
>;

/** Draws a stroke, wider by `by` image pixels on every side; a stroke that erases, thinner. */
export function drawStroke(context: Canvas, { kind, size, widths, points }: Stroke, by = 0) {
  const added = kind === 'erase' ? -2 * by : 2 * by;
  context.lineCap = 'round';
  context.lineJoin = 'round';
  let width = 0;
  context.beginPath();
  for (let at = 0; at + 1 < points.length; at += 2) {
    const [x = 0, y = 0] = points.slice(at, at + 2);
    const next = (widths?.[at / 2] ?? size) + added;
    if (next !== width) {
      if (width > 0) context.stroke();
      width = next;
      context.lineWidth = width;
      context.beginPath();
      context.moveTo(points[at - 2] ?? x, points[at - 1] ?? y);
    }
    // A line of length zero draws nothing.
    context.lineTo(at === 0 ? x + 0.01 : x, y);
  }
  if (width > 0) context.stroke();
}
