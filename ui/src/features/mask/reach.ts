import type { Config } from '@/lib/api-types';
import type { ImageSize } from '@/lib/image-size';

export type ReachRule = Config['magicFix']['reach'][number];

/** How far a fix may change the image beyond its mask, in image pixels. The API computes the same number. */
export function reachPixels({ divisor, least, most }: ReachRule, { x, y }: ImageSize): number {
  const part = Math.min(most, Math.max(least, Math.floor(Math.max(x, y) / divisor)));
  return Math.min(part, Math.max(1, Math.floor(Math.min(x, y) / 8)));
}
