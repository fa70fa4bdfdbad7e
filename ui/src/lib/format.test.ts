import { expect, test } from 'vitest';
import { formatCount } from './format';

test.each([
  [{ unit: 'tiles', done: 12, total: 48 }, 'Tile 12 of 48'],
  [{ unit: 'steps', done: 3, total: 20 }, 'Step 3 of 20'],
  [{ unit: 'steps', done: 0, total: 20 }, 'Step 1 of 20'],
  [{ unit: 'tiles', done: 1, total: 1 }, null],
  [null, null],
  [undefined, null],
] as const)('formats %j as %j', (count, text) => {
  expect(formatCount(count)).toBe(text);
});
