import type { ImageSize } from '@/lib/image-size';
import { encodePng } from '@/lib/png';
import type { Shape } from './marks';
import { maskRows } from './raster';

/**
 * Encodes the mask as a PNG of the image's size: opaque white where the image should change, transparent elsewhere.
 * Null if nothing is marked.
 */
export async function maskFile(shapes: Shape[], image: ImageSize): Promise<File | null> {
  const rows = maskRows(shapes, image);
  let isMarked = false;
  const png = await encodePng(
    { width: image.x, height: image.y },
    {
      bitDepth: 1,
      colorType: 3,
      // Two whites, the first of them transparent.
      chunks: [
        ['PLTE', new Uint8Array(6).fill(255)],
        ['tRNS', new Uint8Array([0, 255])],
      ],
    },
    (bytes) => {
      const row: Uint8Array = rows.next().value ?? new Uint8Array();
      const first = row.indexOf(1);
      isMarked ||= first >= 0;
      for (let x = first; x >= 0 && x < row.length; x += 1) {
        if (row[x]) bytes[x >> 3] = (bytes[x >> 3] ?? 0) | (0x80 >> (x & 7));
      }
    },
  );
  return isMarked ? new File([png], 'mask.png', { type: 'image/png' }) : null;
}
