import { readFile } from 'node:fs/promises';
import type { Download, Page } from '@playwright/test';

type Picture = { type: string; size: string; at: (x: number, y: number) => number[] };

/** Decodes a picture in the browser. */
export async function pictureOf(
  page: Page,
  file: Download | Buffer,
  positions: [x: number, y: number][],
): Promise<Picture> {
  const bytes = Buffer.isBuffer(file) ? file : await readFile(await file.path());
  const found = await page.evaluate(
    async ({ base64, positions }) => {
      const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
      const bitmap = await createImageBitmap(new Blob([bytes]));
      const context = new OffscreenCanvas(bitmap.width, bitmap.height).getContext('2d', {
        willReadFrequently: true,
      });
      if (!context) throw new Error('no canvas');
      context.drawImage(bitmap, 0, 0);
      return {
        size: `${bitmap.width} × ${bitmap.height}`,
        colors: positions.map(([x, y]) => Array.from(context.getImageData(x, y, 1, 1).data)),
      };
    },
    { base64: bytes.toString('base64'), positions },
  );
  return {
    type: typeOf(bytes),
    size: found.size,
    at: (x, y) => found.colors[positions.findIndex(([left, top]) => left === x && top === y)] ?? [],
  };
}

/** Detects the type by content, not by name. */
function typeOf(bytes: Buffer): string {
  if (bytes.subarray(1, 4).toString() === 'PNG') return 'png';
  if (bytes.subarray(8, 12).toString() === 'WEBP') return 'webp';
  return bytes.readUInt16BE(0) === 0xffd8 ? 'jpg' : 'unknown';
}
