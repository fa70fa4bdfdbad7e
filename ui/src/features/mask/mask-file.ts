import type { ImageSize } from '@/lib/image-size';
import type { Shape } from './marks';
import { maskRows } from './raster';

const SIGNATURE = [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a];
/** One bit per pixel; a palette of two whites, the first of them transparent. */
const ONE_BIT = 1;
const PALETTE = 3;

/**
 * Encodes the mask as a PNG of the image's size: opaque white where the image should change, transparent elsewhere.
 * Null if nothing is marked. Written a few rows at a time, so that it needs next to no memory.
 */
export async function maskFile(shapes: Shape[], image: ImageSize): Promise<File | null> {
  const packed = new CompressionStream('deflate');
  const data = new Response(packed.readable).arrayBuffer();
  const isMarked = await writeRows(packed.writable, shapes, image);
  const compressed = new Uint8Array(await data);
  if (!isMarked) return null;

  const header = new DataView(new ArrayBuffer(13));
  header.setUint32(0, image.x);
  header.setUint32(4, image.y);
  header.setUint8(8, ONE_BIT);
  header.setUint8(9, PALETTE);
  return new File(
    [
      new Uint8Array(SIGNATURE),
      chunk('IHDR', new Uint8Array(header.buffer)),
      chunk('PLTE', new Uint8Array(6).fill(255)),
      chunk('tRNS', new Uint8Array([0, 255])),
      chunk('IDAT', compressed),
      chunk('IEND', new Uint8Array()),
    ],
    'mask.png',
    { type: 'image/png' },
  );
}

/** Writes each row as a filter byte (0: none) and its bits. Returns whether any bit is set. */
async function writeRows(target: WritableStream, shapes: Shape[], image: ImageSize): Promise<boolean> {
  const writer = target.getWriter();
  const rowBytes = 1 + Math.ceil(image.x / 8);
  const rowsAtOnce = 64;
  let isMarked = false;
  let batch = new Uint8Array(rowBytes * rowsAtOnce);
  let filled = 0;
  for (const row of maskRows(shapes, image)) {
    const first = row.indexOf(1);
    isMarked ||= first >= 0;
    for (let x = first; x >= 0 && x < row.length; x += 1) {
      if (!row[x]) continue;
      const at = filled + 1 + (x >> 3);
      batch[at] = (batch[at] ?? 0) | (0x80 >> (x & 7));
    }
    filled += rowBytes;
    if (filled === batch.length) {
      await writer.write(batch);
      batch = new Uint8Array(rowBytes * rowsAtOnce);
      filled = 0;
    }
  }
  await writer.write(batch.subarray(0, filled));
  await writer.close();
  return isMarked;
}

function chunk(name: string, data: Uint8Array): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(data.length + 12);
  const view = new DataView(bytes.buffer);
  view.setUint32(0, data.length);
  bytes.set(new TextEncoder().encode(name), 4);
  bytes.set(data, 8);
  view.setUint32(data.length + 8, checksum(bytes.subarray(4, data.length + 8)));
  return bytes;
}

/** CRC-32, as PNG appends it to each chunk. */
function checksum(bytes: Uint8Array): number {
  let sum = 0xffffffff;
  for (const byte of bytes) {
    sum ^= byte;
    for (let bit = 0; bit < 8; bit += 1) sum = sum & 1 ? (sum >>> 1) ^ 0xedb88320 : sum >>> 1;
  }
  return ~sum >>> 0;
}
