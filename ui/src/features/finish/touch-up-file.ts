import type { Stroke } from '@/features/mask/marks';
import type { ImageSize } from '@/lib/image-size';
import { encodePng } from '@/lib/png';
import { radiusOf, softness } from './soft-brush';

const UNCHANGED = 128;
const ERASED = 0;
const RESTORED = 255;
/** Rows per band; each band first selects the strokes that reach it. */
const BAND = 64;

/** Encodes a touch-up as the API wants it: gray, of the picture's size, 128 unchanged, 0 erased, 255 restored. */
export async function touchUpFile(strokes: Stroke[], size: ImageSize): Promise<File> {
  const rows = touchUpRows(strokes, size);
  const png = await encodePng({ width: size.x, height: size.y }, { bitDepth: 8, colorType: 0 }, (bytes) => {
    const row = rows.next().value;
    if (row) bytes.set(row);
  });
  return new File([png], 'touch-up.png', { type: 'image/png' });
}

type Line = { ax: number; ay: number; bx: number; by: number };
type Path = { value: number; radius: number; top: number; bottom: number; lines: Line[] };

/**
 * Yields the touch-up row by row; the buffer is reused. A stroke moves each pixel toward its value by the softness of
 * the brush there. Each stroke counts once per pixel, however often it crosses itself.
 */
export function* touchUpRows(strokes: Stroke[], { x: width, y: height }: ImageSize): Generator<Uint8Array> {
  const paths = strokes.map(pathOf);
  const row = new Uint8Array(width);
  const effect = new Float32Array(width);
  for (let start = 0; start < height; start += BAND) {
    const near = paths.filter(({ top, bottom }) => top < start + BAND && bottom >= start);
    for (let y = start; y < Math.min(start + BAND, height); y += 1) {
      row.fill(UNCHANGED);
      for (const path of near) if (path.top <= y && path.bottom >= y) applyPath(row, effect, path, y + 0.5);
      yield row;
    }
  }
}

function pathOf({ kind, size, points }: Stroke): Path {
  const radius = radiusOf(size);
  const lines: Line[] = [];
  let [top, bottom] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  for (let at = 0; at + 1 < points.length; at += 2) {
    const [ax = 0, ay = 0, bx = ax, by = ay] = points.slice(at, at + 4);
    // The last point only ends the line before it, unless it is the only point: a dot.
    if (at === 0 || at + 3 < points.length) lines.push({ ax, ay, bx, by });
    top = Math.min(top, ay);
    bottom = Math.max(bottom, ay);
  }
  const value = kind === 'erase' ? ERASED : RESTORED;
  return { value, radius, top: Math.floor(top - radius), bottom: Math.ceil(bottom + radius), lines };
}

/** Applies a stroke to the row whose pixel centers are at `y`. */
function applyPath(row: Uint8Array, effect: Float32Array, { value, radius, lines }: Path, y: number) {
  let [from, to] = [row.length, 0];
  for (const line of lines) {
    if (Math.min(line.ay, line.by) - radius > y || Math.max(line.ay, line.by) + radius < y) continue;
    const left = Math.max(0, Math.floor(Math.min(line.ax, line.bx) - radius));
    const right = Math.min(row.length, Math.ceil(Math.max(line.ax, line.bx) + radius));
    for (let x = left; x < right; x += 1) {
      const here = softness(distanceTo(line, x + 0.5, y), radius);
      if (here > (effect[x] ?? 0)) effect[x] = here;
    }
    from = Math.min(from, left);
    to = Math.max(to, right);
  }
  for (let x = from; x < to; x += 1) {
    const [old = UNCHANGED, share = 0] = [row[x], effect[x]];
    row[x] = Math.round(old + (value - old) * share);
    effect[x] = 0;
  }
}

function distanceTo({ ax, ay, bx, by }: Line, x: number, y: number): number {
  const [dx, dy] = [bx - ax, by - ay];
  const square = dx * dx + dy * dy;
  const along = square > 0 ? Math.min(1, Math.max(0, ((x - ax) * dx + (y - ay) * dy) / square)) : 0;
  return Math.hypot(x - ax - along * dx, y - ay - along * dy);
}
