import { expect, test } from 'vitest';
import { pathWithin } from './path-within';

test.each(['/images', '/upscale/image-1', '/return?session_id=cs_1'])(
  '%s is within this origin',
  (address) => {
    expect(pathWithin(address)).toBe(address);
  },
);

test.each([
  null,
  undefined,
  7,
  {},
  '',
  'images',
  'https://evil.test/images',
  '//evil.test/images',
  '/\\evil.test',
  '/\t/evil.test',
  '/.//evil.test',
  'javascript:alert(1)',
])('%j is rejected', (address) => {
  expect(pathWithin(address)).toBeNull();
});
