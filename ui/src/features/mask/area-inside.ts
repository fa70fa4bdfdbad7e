import type { Area } from './marks';

/**
 * Returns the pixels whose centers a closed line surrounds, by the nonzero winding rule: a loop that crosses itself is
 * selected as a whole. Null if there are none. `points` is x, y, x, y, …
 */
export function areaInside(points: number[]): Area | null {
  const corners = points.length / 2;
  if (corners < 3) return null;
  const [top, bottom] = bounds(points.filter((_, index) => index % 2 === 1));
  const spans: number[] = [];
  for (let y = Math.max(0, Math.floor(top)); y <= Math.ceil(bottom); y += 1) {
    addRow(spans, points, corners, y);
  }
  return spans.length > 0 ? { kind: 'area', spans } : null;
}

function addRow(spans: number[], points: number[], corners: number, y: number) {
  const center = y + 0.5;
  const crossings: [x: number, direction: 1 | -1][] = [];
  for (let at = 0; at < corners; at += 1) {
    const next = (at + 1) % corners;
    const [ax = 0, ay = 0] = [points[2 * at], points[2 * at + 1]];
    const [bx = 0, by = 0] = [points[2 * next], points[2 * next + 1]];
    if (ay <= center === by <= center) continue;
    crossings.push([ax + ((center - ay) / (by - ay)) * (bx - ax), by > ay ? 1 : -1]);
  }
  crossings.sort(([a], [b]) => a - b);
  let winding = 0;
  let from = 0;
  for (const [x, direction] of crossings) {
    const column = Math.max(0, Math.ceil(x - 0.5));
    if (winding === 0) from = column;
    winding += direction;
    if (winding === 0 && column > from) spans.push(y, from, column);
  }
}

/** The smallest and the largest value; spreading a long stroke into arguments would overflow the stack. */
function bounds(values: number[]): [number, number] {
  let [least, most] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  for (const value of values) {
    least = Math.min(least, value);
    most = Math.max(most, value);
  }
  return [least, most];
}
