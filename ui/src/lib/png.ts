const SIGNATURE = [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a];
/** Rows compressed at a time. */
const ROWS_AT_ONCE = 64;

type PngFormat = {
  bitDepth: 1 | 8;
  /** 0: gray, 3: palette. */
  colorType: 0 | 3;
  /** Chunks before the pixels, such as the palette. */
  chunks?: [name: string, data: Uint8Array][];
};

/**
 * Encodes rows of pixels as a PNG, a few rows at a time, so that it needs next to no memory. `writeRow` gets the bytes
 * of a row, which are zero.
 */
export async function encodePng(
  { width, height }: { width: number; height: number },
  { bitDepth, colorType, chunks = [] }: PngFormat,
  writeRow: (bytes: Uint8Array, y: number) => void,
): Promise<Blob> {
  const packed = new CompressionStream('deflate');
  const data = new Response(packed.readable).arrayBuffer();
  const writer = packed.writable.getWriter();
  // Each row starts with its filter (0: none).
  const rowBytes = 1 + Math.ceil((width * bitDepth) / 8);
  for (let start = 0; start < height; start += ROWS_AT_ONCE) {
    const rows = Math.min(ROWS_AT_ONCE, height - start);
    const batch = new Uint8Array(rowBytes * rows);
    for (let y = 0; y < rows; y += 1)
      writeRow(batch.subarray(y * rowBytes + 1, (y + 1) * rowBytes), start + y);
    await writer.write(batch);
  }
  await writer.close();

  const header = new DataView(new ArrayBuffer(13));
  header.setUint32(0, width);
  header.setUint32(4, height);
  header.setUint8(8, bitDepth);
  header.setUint8(9, colorType);
  const parts = [
    new Uint8Array(SIGNATURE),
    chunk('IHDR', new Uint8Array(header.buffer)),
    ...chunks.map(([name, bytes]) => chunk(name, bytes)),
    chunk('IDAT', new Uint8Array(await data)),
    chunk('IEND', new Uint8Array()),
  ];
  return new Blob(parts, { type: 'image/png' });
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
export function checksum(bytes: Uint8Array): number {
  let sum = 0xffffffff;
  for (const byte of bytes) {
    sum ^= byte;
    for (let bit = 0; bit < 8; bit += 1) sum = sum & 1 ? (sum >>> 1) ^ 0xedb88320 : sum >>> 1;
  }
  return ~sum >>> 0;
}
