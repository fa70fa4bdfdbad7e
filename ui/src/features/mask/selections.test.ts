import { expect, test } from 'vitest';
import { areaInside } from './area-inside';
import { inverted } from './inverted';
import type { Shape } from './marks';
import { maskRows } from './raster';

const image = { x: 9, y: 7 };
// Each row is read at once: the buffer is reused.
const rows = (...shapes: Shape[]) => Array.from(maskRows(shapes, image), (row) => row.join(''));

test('a lasso selects the pixels that its line surrounds', () => {
  const square = areaInside([2, 1, 6, 1, 6, 4, 2, 4]);
  expect(square && rows(square)).toEqual([
    '000000000',
    '001111000',
    '001111000',
    '001111000',
    '000000000',
    '000000000',
    '000000000',
  ]);
});

test('a lasso that crosses itself or leaves the image selects everything inside', () => {
  const twice = areaInside([1, 1, 5, 1, 5, 5, 1, 5, 1, 1, 5, 1, 5, 5, 1, 5]);
  expect(twice && rows(twice)[2]).toBe('011110000');
  const outside = areaInside([-5, -5, 3, -5, 3, 3, -5, 3]);
  expect(outside && rows(outside).slice(0, 4)).toEqual(['111000000', '111000000', '111000000', '000000000']);
});

test.each([[[]], [[1, 1]], [[1, 1, 5, 1]], [[1, 1, 5, 1, 3, 1]]])('%j surrounds nothing', (points) => {
  expect(areaInside(points)).toBeNull();
});

test('inverting twice gives the same mask', () => {
  const stroke: Shape = { kind: 'paint', size: 3, points: [2, 2, 6, 4] };
  const once = inverted([stroke], image) as Shape;
  expect(rows(once).map((row) => row.replaceAll(/./g, (bit) => String(1 - Number(bit))))).toEqual(
    rows(stroke),
  );
  const twice = inverted([once], image) as Shape;
  expect(rows(twice)).toEqual(rows(stroke));
  expect(once).toMatchObject({ startsNewMask: true });
});

test('the inverse of everything is nothing', () => {
  const all: Shape = { kind: 'paint', size: 100, points: [4, 4] };
  expect(inverted([all], image)).toEqual({ kind: 'clear' });
});
