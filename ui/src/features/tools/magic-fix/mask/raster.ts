import type { ImageSize } from '@/lib/image-size';
import type { Area, Shape, Stroke } from './marks';

/** Smaller than this, a brush could pass between the middles of the pixels and leave nothing. */
const MIN_RADIUS = 0.75;
/** Rows that share one look at which pieces reach them at all. */
const BAND = 64;

/** A piece of a shape that can say which pixels of a row it covers. */
type Piece = { value: 0 | 1; top: number; bottom: number; span: (y: number) => [from: number, to: number] };

/**
 * The mask, row by row: one byte a pixel, 1 where the image is to be changed. Computed instead of painted:
 * a canvas of 6000 × 6000 takes 144 MB, more than some browsers have for one, and some give back pixels
 * that differ from the painted ones, to tell nothing about the machine. The same strokes are the same mask
 * everywhere. The row that is handed out is used again for the next one.
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

function areaPieces({ runs }: Area): Piece[] {
  const pieces: Piece[] = [];
  for (let at = 0; at + 2 < runs.length; at += 3) {
    const [y = 0, from = 0, to = 0] = runs.slice(at, at + 3);
    pieces.push({ value: 1, top: y, bottom: y, span: () => [from, to] });
  }
  return pieces;
}

function strokePieces({ kind, size, points }: Stroke): Piece[] {
  const radius = Math.max(size / 2, MIN_RADIUS);
  const value = kind === 'paint' ? 1 : 0;
  const pieces: Piece[] = [];
  for (let at = 0; at < points.length; at += 2) {
    const [ax = 0, ay = 0, bx = ax, by = ay] = points.slice(at, at + 4);
    // The last point ends the piece before it; only a dot is nothing but its one point.
    if (at > 0 && at + 2 >= points.length) break;
    pieces.push({
      value,
      top: Math.ceil(Math.min(ay, by) - radius - 0.5),
      bottom: Math.floor(Math.max(ay, by) + radius - 0.5),
      span: (y) => capsuleSpan(ax, ay, bx, by, radius, y + 0.5),
    });
  }
  return pieces;
}

/** The pixels of a row whose middles lie within `radius` of the line from a to b. The shape has no dents. */
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
  const reach = (x: number, half = 0) => {
    left = Math.min(left, x - half);
    right = Math.max(right, x + half);
  };
  const halfA = radius * radius - (y - ay) ** 2;
  const halfB = radius * radius - (y - by) ** 2;
  if (halfA >= 0) reach(ax, Math.sqrt(halfA));
  if (halfB >= 0) reach(bx, Math.sqrt(halfB));
  const length = Math.hypot(bx - ax, by - ay);
  if (length > 0 && ay !== by) {
    for (const side of [radius, -radius]) {
      // One of the two long edges: where does it cross this row, if it does?
      const ex = ax - ((by - ay) / length) * side;
      const ey = ay + ((bx - ax) / length) * side;
      const along = (y - ey) / (by - ay);
      if (along >= 0 && along <= 1) reach(ex + (bx - ax) * along);
    }
  }
  return left > right ? [0, 0] : [Math.ceil(left - 0.5), Math.floor(right - 0.5) + 1];
}
