import { describe, expect, test } from 'vitest';
import {
  type Area,
  add,
  emptyHistory,
  isDrawn,
  lastClicks,
  type Mark,
  redo,
  type Stroke,
  shapesOf,
  undo,
} from './marks';

const stroke = (x: number, change: Partial<Stroke> = {}): Stroke => ({
  kind: 'paint',
  size: 20,
  points: [x, 0],
  ...change,
});
const clicks = { positive: [{ x: 1, y: 2 }], negative: [] };
const area = (x: number, change: Partial<Area> = {}): Area => ({ kind: 'area', spans: [0, 0, x], ...change });
const historyOf = (...marks: Mark[]) => marks.reduce(add, emptyHistory);

describe('the history of a mask', () => {
  test('undo removes the last stroke, redo restores it', () => {
    const two = historyOf(stroke(1), stroke(2));
    expect(shapesOf(undo(two).done)).toEqual([stroke(1)]);
    expect(redo(undo(two))).toEqual(two);
  });

  test('a new stroke discards what could be redone', () => {
    const changed = add(undo(historyOf(stroke(1), stroke(2))), stroke(3));
    expect(redo(changed)).toEqual(changed);
    expect(shapesOf(changed.done)).toEqual([stroke(1), stroke(3)]);
  });

  test('undo and redo do nothing on an empty history', () => {
    expect(undo(emptyHistory)).toEqual(emptyHistory);
    expect(redo(emptyHistory)).toEqual(emptyHistory);
  });

  test('clearing can be undone', () => {
    const cleared = historyOf(stroke(1), stroke(2), { kind: 'clear' });
    expect(shapesOf(cleared.done)).toEqual([]);
    expect(shapesOf(undo(cleared).done)).toEqual([stroke(1), stroke(2)]);
  });

  test('after clearing, the mask starts over', () => {
    expect(shapesOf(historyOf(stroke(1), { kind: 'clear' }, stroke(2)).done)).toEqual([stroke(2)]);
  });

  test('a stroke can start a new mask, and undoing it restores the old one', () => {
    const first = stroke(3, { startsNewMask: true });
    const history = historyOf(stroke(1), stroke(2), first, stroke(4));
    expect(shapesOf(history.done)).toEqual([first, stroke(4)]);
    expect(shapesOf(undo(undo(history)).done)).toEqual([stroke(1), stroke(2)]);
  });
});

describe('a selection', () => {
  test('is replaced by its next click, and undoing that restores it', () => {
    const history = historyOf(stroke(1), area(1, { clicks }), area(2, { clicks, refines: true }));
    expect(shapesOf(history.done)).toEqual([stroke(1), area(2, { clicks, refines: true })]);
    expect(shapesOf(undo(history).done)).toEqual([stroke(1), area(1, { clicks })]);
  });

  test('that starts a new mask still does when it is refined', () => {
    const refined = area(2, { clicks, refines: true });
    const history = historyOf(stroke(1), area(1, { clicks, startsNewMask: true }), refined);
    expect(shapesOf(history.done)).toEqual([refined]);
  });

  test('is continued only while it is the last mark', () => {
    const selected = historyOf(area(1, { clicks }));
    expect(lastClicks(selected.done)).toEqual(clicks);
    expect(lastClicks(add(selected, stroke(1)).done)).toBeNull();
    expect(lastClicks(historyOf(area(1)).done)).toBeNull();
    expect(lastClicks(historyOf(area(1, { clicks, erases: true })).done)).toBeNull();
  });
});

describe('whether anything is drawn', () => {
  test.each([
    [[stroke(1)], true],
    [[{ kind: 'area', spans: [0, 0, 1] }] as Mark[], true],
    [[stroke(1, { kind: 'erase' })], false],
    [[area(1, { erases: true })], false],
    [[stroke(1), { kind: 'clear' }] as Mark[], false],
    [[], false],
  ])('%j: %s', (marks, expected) => {
    expect(isDrawn(shapesOf(marks))).toBe(expected);
  });
});
