import type { ImageSize } from '@/lib/image-size';
import type { Area, Shape, Stroke } from './marks';

/** A thinner brush could pass between pixel centers and leave gaps. */
const MIN_RADIUS = 0.75;
/** Rows per band; each band first selects the pieces that reach it. */
const BAND = 64;

/** A part of a shape. `span` returns the pixels it covers in row `y`, `to` exclusive. */
type Piece = { value: 0 | 1; top: number; bottom: number; span: (y: number) => [from: number, to: number] };

/**
 * Yields the mask row by row: one byte per pixel, 1 where the image should change. The buffer is reused for every row.
 *
 * Computed rather than painted: a canvas of 6000 × 6000 takes 144 MB, which some browsers refuse, and browsers that
 * resist fingerprinting alter the pixels they return. This way the same strokes produce the same mask everywhere.
 */
export function* maskRows(shapes: Shape[], { x: width, y: height }: ImageSize): Generator<Uint8Array> {
  const pieces = shapes.flatMap((shape) => (shape.kind === 'area' ? areaPieces(shape) : strokePieces(shape)));
  const row = new Uint8Array(width);
  for (let start = 0; start < height; start += BAND) {
    const near = pieces.filter(({ top, bottom }) => top < start + BAND && bottom >= start);
    for (let y = start; y < Math.min(start + BAND, height); y += 1) {
      row.fill(0);
      for (const { value, top, bottom, span } of near) {
        if (y < top || y > bottom) continue;
        const [from, to] = span(y);
        if (to > 0 && from < width) row.fill(value, Math.max(0, from), Math.max(0, to));
      }
      yield row;
    }
  }
}

function areaPieces({ spans, erases }: Area): Piece[] {
  const pieces: Piece[] = [];
  for (let at = 0; at + 2 < spans.length; at += 3) {
    const [y = 0, from = 0, to = 0] = spans.slice(at, at + 3);
    pieces.push({ value: erases ? 0 : 1, top: y, bottom: y, span: () => [from, to] });
  }
  return pieces;
}

function strokePieces({ kind, size, widths, points }: Stroke): Piece[] {
  const value = kind === 'paint' ? 1 : 0;
  const pieces: Piece[] = [];
  for (let at = 0; at < points.length; at += 2) {
    const [bx = 0, by = 0] = points.slice(at, at + 2);
    // The line to the first point is a dot.
    const [ax = 0, ay = 0] = points.slice(Math.max(0, at - 2), at + 2);
    const radius = Math.max((widths?.[at / 2] ?? size) / 2, MIN_RADIUS);
    pieces.push({
      value,
      top: Math.ceil(Math.min(ay, by) - radius - 0.5),
      bottom: Math.floor(Math.max(ay, by) + radius - 0.5),
      span: (y) => capsuleSpan(ax, ay, bx, by, radius, y + 0.5),
    });
  }
  return pieces;
}

/**
 * Returns the pixels of the row at `y` whose centers are within `radius` of the line from a to b. The shape is convex,
 * so they form one span.
 */
function capsuleSpan(
  ax: number,
  ay: number,
  bx: number,
  by: number,
  radius: number,
  y: number,
): [number, number] {
  let left = Number.POSITIVE_INFINITY;
  let right = Number.NEGATIVE_INFINITY;
  const extend = (x: number, half = 0) => {
    left = Math.min(left, x - half);
    right = Math.max(right, x + half);
  };
  const halfA = radius * radius - (y - ay) ** 2;
  const halfB = radius * radius - (y - by) ** 2;
  if (halfA >= 0) extend(ax, Math.sqrt(halfA));
  if (halfB >= 0) extend(bx, Math.sqrt(halfB));
  const length = Math.hypot(bx - ax, by - ay);
  if (length > 0 && ay !== by) {
    for (const side of [radius, -radius]) {
      // Where one of the two long edges crosses this row, if it does.
      const ex = ax - ((by - ay) / length) * side;
      const ey = ay + ((bx - ax) / length) * side;
      const along = (y - ey) / (by - ay);
      if (along >= 0 && along <= 1) extend(ex + (bx - ax) * along);
    }
  }
  return left > right ? [0, 0] : [Math.ceil(left - 0.5), Math.floor(right - 0.5) + 1];
}
