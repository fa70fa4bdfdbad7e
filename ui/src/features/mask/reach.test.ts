import { expect, test } from 'vitest';
import { aConfig } from '@/testing/builders';
import { reachPixels } from './reach';

// The API computes the same numbers; catalog/src/reach.rs has the same rows.
test.each([
  ['remove', 640, 480, 8],
  ['remove', 1200, 1600, 20],
  ['remove', 6000, 4000, 24],
  ['edit', 640, 480, 4],
  ['add', 1500, 1000, 7],
  ['edit', 6000, 4000, 8],
  ['restore', 1600, 900, 4],
  ['enhance', 1024, 1024, 10],
  ['remove', 400, 40, 5],
  ['enhance', 5, 7, 1],
  ['remove', 1, 1, 1],
])('%s reaches %i × %i: %i px beyond the mask', (mode, x, y, pixels) => {
  const rule = aConfig().magicFix.reach.find((one) => one.mode === mode);
  expect(rule && reachPixels(rule, { x, y })).toBe(pixels);
});
