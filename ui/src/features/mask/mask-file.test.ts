import { inflateSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import type { Shape } from './marks';
import { maskFile } from './mask-file';

const paint = (size: number, ...points: number[]): Shape => ({ kind: 'paint', size, points });
const erase = (size: number, ...points: number[]): Shape => ({ kind: 'erase', size, points });

/** Decodes a PNG with one bit per pixel, independently of the encoder. */
async function decode(file: File | null) {
  if (!file) throw new Error('no mask');
  const bytes = await new Promise<Buffer>((resolve) => {
    const reader = new FileReader();
    reader.onload = () => resolve(Buffer.from(reader.result as ArrayBuffer));
    reader.readAsArrayBuffer(file);
  });
  const chunks = new Map<string, Buffer>();
  for (let at = 8; at < bytes.length; ) {
    const length = bytes.readUInt32BE(at);
    chunks.set(bytes.toString('latin1', at + 4, at + 8), bytes.subarray(at + 8, at + 8 + length));
    at += length + 12;
  }
  const header = chunks.get('IHDR') ?? Buffer.alloc(13);
  const [width, height] = [header.readUInt32BE(0), header.readUInt32BE(4)];
  const rows = inflateSync(chunks.get('IDAT') ?? Buffer.alloc(0));
  const rowBytes = 1 + Math.ceil(width / 8);
  const at = (x: number, y: number) => ((rows[y * rowBytes + 1 + (x >> 3)] ?? 0) >> (7 - (x & 7))) & 1;
  let marked = 0;
  for (const byte of rows) for (let bits = byte; bits; bits &= bits - 1) marked += 1;
  return { width, height, header, chunks, at, marked };
}

/** Whether a pixel belongs to the stroke by definition: its center is within half a brush of the line. */
function expected(x: number, y: number, size: number, points: number[]) {
  const [px, py] = [x + 0.5, y + 0.5];
  for (let i = 0; i + 3 < points.length; i += 2) {
    const [ax = 0, ay = 0, bx = 0, by = 0] = points.slice(i, i + 4);
    const length = (bx - ax) ** 2 + (by - ay) ** 2;
    const along = length === 0 ? 0 : ((px - ax) * (bx - ax) + (py - ay) * (by - ay)) / length;
    const t = Math.min(1, Math.max(0, along));
    if (Math.hypot(px - ax - t * (bx - ax), py - ay - t * (by - ay)) <= size / 2) return 1;
  }
  return 0;
}

describe('the mask as a file', () => {
  test('is a PNG of the image’s size: white where marked, transparent elsewhere', async () => {
    const file = await maskFile([paint(10, 50, 40)], { x: 101, y: 77 });
    expect(file?.type).toBe('image/png');
    const { width, height, header, chunks, at } = await decode(file);
    expect([width, height]).toEqual([101, 77]);
    // One bit, palette; two whites, the first of them transparent.
    expect([...header.subarray(8)]).toEqual([1, 3, 0, 0, 0]);
    expect([...(chunks.get('PLTE') ?? [])]).toEqual([255, 255, 255, 255, 255, 255]);
    expect([...(chunks.get('tRNS') ?? [])]).toEqual([0, 255]);
    expect([at(50, 40), at(46, 40), at(44, 40), at(50, 46), at(0, 0)]).toEqual([1, 1, 0, 0, 0]);
  });

  test('is as wide at each place as the pen pressed', async () => {
    const points = [20, 20, 50, 24, 70, 60];
    const shape: Shape = { kind: 'paint', size: 20, points, widths: [20, 6, 12] };
    const { at } = await decode(await maskFile([shape], { x: 90, y: 90 }));
    for (let y = 0; y < 90; y += 1) {
      for (let x = 0; x < 90; x += 1) {
        const isMarked =
          expected(x, y, 20, [20, 20, 20, 20]) ||
          expected(x, y, 6, points.slice(0, 4)) ||
          expected(x, y, 12, points.slice(2));
        expect([x, y, at(x, y)]).toEqual([x, y, isMarked]);
      }
    }
  });

  test('an area that takes away clears its pixels, and later marks paint over it', async () => {
    const area = (erases: boolean): Shape => ({ kind: 'area', spans: [2, 0, 6, 3, 0, 6], erases });
    const spot: Shape = { kind: 'area', spans: [2, 1, 2] };
    const file = await maskFile([paint(20, 0, 0, 10, 10), area(true), spot], { x: 10, y: 8 });
    const { at } = await decode(file);
    expect([at(0, 2), at(1, 2), at(5, 3), at(6, 2), at(1, 1)]).toEqual([0, 1, 0, 1, 1]);
  });

  test.each([
    ['a slanted line', [20, 70, 90, 15]],
    ['a horizontal line', [10.3, 40.2, 88.8, 40.2]],
    ['a vertical line', [33.3, 9, 33.3, 66]],
    ['a curve with turns', [10, 10, 40, 12, 45, 60, 80, 58, 15, 30]],
    ['a line that leaves the image', [-40, 20, 140, 90]],
  ])('%s covers exactly what is under the brush', async (_, points) => {
    const { at } = await decode(await maskFile([paint(13, ...points)], { x: 100, y: 80 }));
    const wrong: string[] = [];
    for (let y = 0; y < 80; y += 1) {
      for (let x = 0; x < 100; x += 1) {
        if (at(x, y) !== expected(x, y, 13, points)) wrong.push(`${x},${y}`);
      }
    }
    expect(wrong).toEqual([]);
  });

  test('a single click is a dot', async () => {
    const { marked, at } = await decode(await maskFile([paint(20, 50, 50)], { x: 100, y: 100 }));
    expect(at(50, 50)).toBe(1);
    expect(Math.abs(marked - Math.PI * 100)).toBeLessThan(12);
  });

  test('a thin stroke marks an image of 6000 × 6000 without a gap', async () => {
    // The thinnest possible stroke: 10 px at the highest zoom.
    const { marked, at } = await decode(
      await maskFile([paint(10 / 16, 10, 3000.5, 5990, 3000.5)], { x: 6000, y: 6000 }),
    );
    for (let x = 10; x < 5990; x += 1) if (at(x, 3000) !== 1) throw new Error(`a gap at ${x}`);
    expect(marked).toBeLessThan(6000 * 2);
    const dot = await decode(await maskFile([paint(0.1, 4000, 4000)], { x: 6000, y: 6000 }));
    expect(dot.marked).toBeGreaterThan(0);
  });

  test('an eraser removes earlier strokes, not later ones', async () => {
    const [line, hole] = [paint(20, 10, 50, 90, 50), erase(20, 50, 50)];
    const before = await decode(await maskFile([line, hole], { x: 100, y: 100 }));
    expect([before.at(20, 50), before.at(50, 50)]).toEqual([1, 0]);
    const after = await decode(await maskFile([hole, line], { x: 100, y: 100 }));
    expect(after.at(50, 50)).toBe(1);
    const again = await decode(await maskFile([line, hole, paint(6, 50, 50)], { x: 100, y: 100 }));
    expect([again.at(50, 50), again.at(56, 50)]).toEqual([1, 0]);
  });

  test('an imported area is exported unchanged, and can be erased', async () => {
    const area: Shape = { kind: 'area', spans: [2, 0, 9, 3, 5, 10] };
    const { at, marked } = await decode(await maskFile([area], { x: 10, y: 10 }));
    expect(marked).toBe(14);
    expect([at(0, 2), at(8, 2), at(9, 2), at(4, 3), at(9, 3)]).toEqual([1, 1, 0, 0, 1]);
    expect(await maskFile([area, erase(40, 5, 5)], { x: 10, y: 10 })).toBeNull();
  });

  test('there is no mask if nothing is drawn, or nothing inside the image', async () => {
    expect(await maskFile([], { x: 10, y: 10 })).toBeNull();
    expect(await maskFile([paint(5, 40, 40)], { x: 10, y: 10 })).toBeNull();
    expect(await maskFile([paint(5, 4, 4), erase(30, 4, 4)], { x: 10, y: 10 })).toBeNull();
  });

  test('the same strokes produce the same file', async () => {
    const read = async () =>
      (await decode(await maskFile([paint(7, 3, 4, 60, 50)], { x: 64, y: 64 }))).chunks.get('IDAT');
    expect(await read()).toEqual(await read());
  });
});
