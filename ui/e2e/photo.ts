import { randomBytes, randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { crc32, deflateSync } from 'node:zlib';
import { type Download, expect, type Page } from '@playwright/test';
import { pictureOf } from './pixel';

const astronaut = readFileSync(
  fileURLToPath(new URL('../../pixels/tests/photos/astronaut.jpg', import.meta.url)),
);

const size = { width: 512, height: 512 };
const face: [x: number, y: number] = [215, 130];
/** Behind the astronaut. */
export const wall: [x: number, y: number] = [330, 60];

/** A real photo. A random comment makes its bytes unique, so that it is never the file of an earlier test. */
export function aPhoto() {
  const comment = Buffer.from(randomUUID());
  const segment = Buffer.from([0xff, 0xfe, 0, comment.length + 2]);
  return {
    name: 'astronaut.jpg',
    mimeType: 'image/jpeg',
    buffer: Buffer.concat([astronaut.subarray(0, 2), segment, comment, astronaut.subarray(2)]),
  };
}

/** A drawn PNG of any size. Its colors are random, for the same reason. */
export function aPicture(width: number, height: number) {
  const shade = randomBytes(3);
  const rows = Buffer.alloc(height * (1 + width * 3));
  for (let y = 0; y < height; y += 1) {
    for (let x = 0; x < width; x += 1) {
      const at = y * (1 + width * 3) + 1 + x * 3;
      const isInside = (x - width / 2) ** 2 + (y - height / 2) ** 2 < (Math.min(width, height) / 3) ** 2;
      rows[at] = isInside ? 255 : (x * 255) / width;
      rows[at + 1] = isInside ? 255 - (shade[1] ?? 0) : (y * 255) / height;
      rows[at + 2] = (isInside ? shade[2] : shade[0]) ?? 0;
    }
  }
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  // Eight bits, RGB.
  header.set([8, 2], 8);
  return {
    name: 'picture.png',
    mimeType: 'image/png',
    buffer: Buffer.concat([
      Buffer.from('89504e470d0a1a0a', 'hex'),
      pngChunk('IHDR', header),
      pngChunk('IDAT', deflateSync(rows)),
      pngChunk('IEND', Buffer.alloc(0)),
    ]),
  };
}

function pngChunk(name: string, data: Buffer): Buffer {
  const named = Buffer.concat([Buffer.from(name), data]);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(data.length);
  const sum = Buffer.alloc(4);
  sum.writeUInt32BE(crc32(named));
  return Buffer.concat([length, named, sum]);
}

/** Checks that the download is a PNG, `factor` times as large as the photo. */
export async function expectUpscaled(download: Download, factor: number) {
  expect(download.suggestedFilename()).toBe('downloaded_image.png');
  const bytes = await readFile(await download.path());
  expect(bytes.subarray(0, 8).toString('hex')).toBe('89504e470d0a1a0a');
  expect({ width: bytes.readUInt32BE(16), height: bytes.readUInt32BE(20) }).toEqual({
    width: size.width * factor,
    height: size.height * factor,
  });
}

/** Checks that the download is a PNG of the photo's size with an opaque subject and a transparent background. */
export async function expectCutout(page: Page, download: Download) {
  expect(download.suggestedFilename()).toBe('downloaded_image.png');
  const { type, size: found, at } = await pictureOf(page, download, [face, wall]);
  expect([type, found]).toEqual(['png', `${size.width} × ${size.height}`]);
  expect(at(...face)[3]).toBeGreaterThan(250);
  expect(at(...wall)[3]).toBeLessThan(5);
}
