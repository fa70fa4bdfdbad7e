import type { ImageSize } from '@/lib/image-size';

/** A rectangle of a picture, in pixels. */
export type Part = { x: number; y: number; width: number; height: number };

/** Maximum side that the API accepts. */
const SIDE = 128;
const MOST = 5;

/** A reduced gray copy of a picture, `scale` times as wide and high, one value per pixel. */
export type Reduced = { luma: Uint8ClampedArray; width: number; height: number; scale: number };

/**
 * The parts of a picture with the most detail, the best first: there, models differ most. Detail is the sum of the
 * differences between neighboring pixels.
 */
export function detailedParts(picture: ImageSize, { luma, width, height, scale }: Reduced): Part[] {
  const part = { width: Math.min(SIDE, picture.x), height: Math.min(SIDE, picture.y) };
  const [columns, rows] = [part.width, part.height].map((side) => Math.max(1, Math.floor(side * scale)));
  const found: (Part & { detail: number })[] = [];
  for (const y of starts(picture.y, part.height)) {
    for (const x of starts(picture.x, part.width)) {
      const left = Math.min(Math.round(x * scale), width - 1);
      const top = Math.min(Math.round(y * scale), height - 1);
      const right = Math.min(left + (columns ?? 1), width);
      const bottom = Math.min(top + (rows ?? 1), height);
      let detail = 0;
      for (let row = top; row + 1 < bottom; row += 1) {
        for (let at = row * width + left; at + 1 < row * width + right; at += 1) {
          const here = luma[at] ?? 0;
          detail += Math.abs(here - (luma[at + 1] ?? 0)) + Math.abs(here - (luma[at + width] ?? 0));
        }
      }
      found.push({ x, y, ...part, detail });
    }
  }
  found.sort((a, b) => b.detail - a.detail);
  const chosen: Part[] = [];
  for (const { detail: _, ...candidate } of found) {
    if (chosen.length < MOST && !chosen.some((other) => overlaps(candidate, other))) chosen.push(candidate);
  }
  return chosen;
}

/** The left or top edges to try: half a part apart, the last one at the border. */
function starts(length: number, side: number): number[] {
  const last = length - side;
  const steps = Math.ceil(last / (side / 2));
  return Array.from({ length: steps + 1 }, (_, step) => (steps ? Math.round((last * step) / steps) : 0));
}

const overlaps = (a: Part, b: Part) =>
  a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height;
