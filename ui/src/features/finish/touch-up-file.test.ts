import { expect, test } from 'vitest';
import type { Stroke } from '@/features/mask/marks';
import { cropBox } from './crop-box';
import { softLayers } from './soft-brush';
import { touchUpRows } from './touch-up-file';

const size = { x: 20, y: 9 };
const line = (kind: Stroke['kind']): Stroke => ({ kind, size: 8, points: [5, 4.5, 15, 4.5] });
const rowsOf = (strokes: Stroke[]) => Array.from(touchUpRows(strokes, size), (row) => [...row]);

test('an untouched picture is all 128', () => {
  expect(new Set(rowsOf([]).flat())).toEqual(new Set([128]));
});

test('the eraser goes to 0 and the restorer to 255, softly toward the rim', () => {
  const erased = rowsOf([line('erase')]);
  expect(erased[4]?.[10]).toBe(0);
  const rim = erased[1]?.[10] ?? -1;
  expect(rim).toBeGreaterThan(0);
  expect(rim).toBeLessThan(128);
  expect(erased[4]?.[0]).toBe(128);
  expect(rowsOf([line('paint')])[4]?.[10]).toBe(255);
});

test('the last stroke wins where both have their full effect', () => {
  expect(rowsOf([line('erase'), line('paint')])[4]?.[10]).toBe(255);
  expect(rowsOf([line('paint'), line('erase')])[4]?.[10]).toBe(0);
});

test('a stroke counts once where it crosses itself', () => {
  const there = line('erase');
  const back = { ...there, points: [...there.points, 5, 4.5] };
  expect(rowsOf([back])).toEqual(rowsOf([there]));
});

test('a dot is a soft circle', () => {
  const rows = rowsOf([{ kind: 'erase', size: 6, points: [10, 4.5] }]);
  expect(rows[4]?.[10]).toBe(0);
  expect(rows[4]?.[14]).toBe(128);
});

test('the layers of the preview add up to the full effect in the middle', () => {
  const left = softLayers(10).reduce((share, { opacity }) => share * (1 - opacity), 1);
  expect(left).toBeCloseTo(0);
});

test('a crop keeps the margin, enlarges to the aspect, and stays around the subject', () => {
  const subject = { x: 100, y: 100, width: 200, height: 100 };
  expect(cropBox(subject, { margin: 0, aspect: null })).toEqual(subject);
  expect(cropBox(subject, { margin: 10, aspect: null })).toEqual({ x: 80, y: 80, width: 240, height: 140 });
  expect(cropBox(subject, { margin: 0, aspect: '1:1' })).toEqual({ x: 100, y: 50, width: 200, height: 200 });
  expect(cropBox(subject, { margin: 0, aspect: '4:1' })).toEqual({ x: 0, y: 100, width: 400, height: 100 });
});
