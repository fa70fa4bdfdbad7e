import { expect, test } from 'vitest';
import { detailedParts } from './detailed-parts';

/** A gray picture with a checkerboard in one rectangle. */
function picture(width: number, height: number, left: number, top: number, side: number) {
  const luma = new Uint8ClampedArray(width * height).fill(100);
  for (let y = top; y < top + side; y += 1)
    for (let x = left; x < left + side; x += 1) luma[y * width + x] = (x + y) % 2 ? 255 : 0;
  return { luma, width, height };
}

test('the part with the most detail comes first, and no two parts overlap', () => {
  const reduced = { ...picture(300, 200, 220, 130, 60), scale: 0.5 };
  const parts = detailedParts({ x: 600, y: 400 }, reduced);
  expect(parts.length).toBeGreaterThan(2);
  expect(parts[0]).toMatchObject({ width: 128, height: 128 });
  expect(parts[0]?.x).toBeGreaterThanOrEqual(400);
  expect(parts[0]?.y).toBeGreaterThanOrEqual(230);
  for (const [index, a] of parts.entries())
    for (const b of parts.slice(index + 1))
      expect(Math.abs(a.x - b.x) >= 128 || Math.abs(a.y - b.y) >= 128).toBe(true);
  for (const { x, y, width, height } of parts) {
    expect([x, y].every((start) => start >= 0 && Number.isInteger(start))).toBe(true);
    expect(x + width <= 600 && y + height <= 400).toBe(true);
  }
});

test('a small picture is one part', () => {
  expect(detailedParts({ x: 100, y: 30 }, { ...picture(100, 30, 0, 0, 9), scale: 1 })).toEqual([
    { x: 0, y: 0, width: 100, height: 30 },
  ]);
  expect(detailedParts({ x: 1, y: 1 }, { ...picture(1, 1, 0, 0, 1), scale: 1 })).toHaveLength(1);
});

test('a plain picture has parts, too', () => {
  const plain = { luma: new Uint8ClampedArray(100 * 100), width: 100, height: 100, scale: 0.1 };
  expect(detailedParts({ x: 1000, y: 1000 }, plain)).toHaveLength(5);
});
