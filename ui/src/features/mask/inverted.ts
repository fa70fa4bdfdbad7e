import type { ImageSize } from '@/lib/image-size';
import type { Mark, Shape } from './marks';
import { maskRows } from './raster';

/** The mask that starts over with everything outside this one. */
export function inverted(shapes: Shape[], image: ImageSize): Mark {
  const spans: number[] = [];
  let y = 0;
  for (const row of maskRows(shapes, image)) {
    for (let from = row.indexOf(0); from >= 0; ) {
      const end = row.indexOf(1, from);
      const to = end < 0 ? row.length : end;
      spans.push(y, from, to);
      from = end < 0 ? -1 : row.indexOf(0, to);
    }
    y += 1;
  }
  return spans.length > 0 ? { kind: 'area', spans, startsNewMask: true } : { kind: 'clear' };
}
