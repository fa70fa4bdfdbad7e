import { afterEach, expect, test } from 'vitest';
import { formatBytes, formatCount, quoted } from './format';
import { keyOf, setCatalogue } from './translate';

afterEach(() => setCatalogue({}, 'en'));

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

test('writes sizes in the units of the language', () => {
  const sizes = [0, 5, 12_345, 999_999, 25 * 1024 * 1024, 2.5 * 1024 ** 3];
  expect(sizes.map(formatBytes)).toEqual(['0 kB', '1 kB', '12 kB', '1000 kB', '25 MB', '2.5 GB']);
  setCatalogue({}, 'fr');
  expect(sizes.slice(4).map(formatBytes)).toEqual(['25\u202fMo', '2,5\u202fGo']);
});

test('quotes a text as the language does', () => {
  expect(quoted('remove it')).toBe('“remove it”');
  setCatalogue({ [keyOf('“{text}”')]: '„{text}“' }, 'de');
  expect(quoted('remove it')).toBe('„remove it“');
});
