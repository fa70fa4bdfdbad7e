import { expect, test } from 'vitest';
import { boxOfSubject } from './crop-box';

const [width, height] = [8, 6];
const picture = (alphas: [x: number, y: number, alpha: number][]) => {
  const data = new Uint8ClampedArray(width * height * 4);
  for (const [x, y, alpha] of alphas) data[(y * width + x) * 4 + 3] = alpha;
  return data;
};

test('pixels too faint to see do not belong to the subject', () => {
  const subject: [number, number, number][] = [
    [2, 1, 255],
    [4, 2, 5],
  ];
  const box = { x: 2, y: 1, width: 3, height: 2 };
  expect(boxOfSubject(picture(subject), width, height)).toEqual(box);
  expect(boxOfSubject(picture([...subject, [7, 5, 4], [0, 0, 1]]), width, height)).toEqual(box);
  expect(boxOfSubject(picture([[7, 5, 4]]), width, height)).toBeNull();
});
