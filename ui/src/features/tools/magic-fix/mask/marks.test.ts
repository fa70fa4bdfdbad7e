import { describe, expect, test } from 'vitest';
import { add, emptyHistory, isDrawn, type Mark, redo, type Stroke, shapesOf, undo } from './marks';

const stroke = (x: number, change: Partial<Stroke> = {}): Stroke => ({
  kind: 'paint',
  size: 20,
  points: [x, 0],
  ...change,
});
const historyOf = (...marks: Mark[]) => marks.reduce(add, emptyHistory);

describe('the history of a mask', () => {
  test('undo takes the last stroke away, redo brings it back', () => {
    const two = historyOf(stroke(1), stroke(2));
    expect(shapesOf(undo(two).done)).toEqual([stroke(1)]);
    expect(redo(undo(two))).toEqual(two);
  });

  test('a new stroke ends what could be brought back', () => {
    const changed = add(undo(historyOf(stroke(1), stroke(2))), stroke(3));
    expect(redo(changed)).toEqual(changed);
    expect(shapesOf(changed.done)).toEqual([stroke(1), stroke(3)]);
  });

  test('with nothing to undo or redo nothing happens', () => {
    expect(undo(emptyHistory)).toEqual(emptyHistory);
    expect(redo(emptyHistory)).toEqual(emptyHistory);
  });

  test('clearing is a step that can be undone', () => {
    const cleared = historyOf(stroke(1), stroke(2), { kind: 'clear' });
    expect(shapesOf(cleared.done)).toEqual([]);
    expect(shapesOf(undo(cleared).done)).toEqual([stroke(1), stroke(2)]);
  });

  test('after clearing a mask begins anew', () => {
    expect(shapesOf(historyOf(stroke(1), { kind: 'clear' }, stroke(2)).done)).toEqual([stroke(2)]);
  });

  test('a fresh stroke is a new mask, and one undo brings the old one back', () => {
    const fresh = stroke(3, { isFresh: true });
    const history = historyOf(stroke(1), stroke(2), fresh, stroke(4));
    expect(shapesOf(history.done)).toEqual([fresh, stroke(4)]);
    expect(shapesOf(undo(undo(history)).done)).toEqual([stroke(1), stroke(2)]);
  });
});

describe('whether something is drawn', () => {
  test.each([
    [[stroke(1)], true],
    [[{ kind: 'area', runs: [0, 0, 1] }] as Mark[], true],
    [[stroke(1, { kind: 'erase' })], false],
    [[stroke(1), { kind: 'clear' }] as Mark[], false],
    [[], false],
  ])('%j: %s', (marks, expected) => {
    expect(isDrawn(shapesOf(marks))).toBe(expected);
  });
});
