import { beforeEach, describe, expect, test, vi } from 'vitest';
import type { Pointer } from '@/components/pan-zoom/pointer';
import { type Box, createMaskGestures, type Picked } from './gestures';
import type { Area, Stroke } from './marks';

const zoom = vi.fn();
const move = vi.fn();
let committed: (Stroke | Area)[];
let isLasso: boolean;
let feelsPressure: boolean;
let active: Stroke | null;
let isMoving: boolean;
let isSelecting: boolean;
let activeBox: Box | null;
let picked: Picked[];
const begin = vi.fn();
let kind: Stroke['kind'];
let view: { scale: number; x: number; y: number };

function start() {
  return createMaskGestures({
    control: {
      get view() {
        return view;
      },
      zoom,
      move,
    },
    brush: () => ({ kind, size: 20, isLasso, feelsPressure }),
    isMoving: () => isMoving,
    begin,
    setActiveStroke: (stroke) => {
      active = stroke;
    },
    commit: (mark) => committed.push(mark),
    isSelecting: () => isSelecting,
    setActiveBox: (box) => {
      activeBox = box;
    },
    select: (pick) => picked.push(pick),
  });
}

const at = (x: number, y: number, change: Partial<Pointer> = {}): Pointer => ({
  id: 1,
  type: 'mouse',
  button: 0,
  buttons: 1,
  x,
  y,
  ...change,
});
const finger = (id: number, x: number, y: number) => at(x, y, { id, type: 'touch' });
const pen = (x: number, y: number, buttons = 1) => at(x, y, { id: 9, type: 'pen', buttons });

const pointsOf = (mark: Stroke | Area) => (mark.kind === 'area' ? null : mark.points);

beforeEach(() => {
  committed = [];
  active = null;
  isMoving = false;
  isSelecting = false;
  activeBox = null;
  picked = [];
  kind = 'paint';
  isLasso = false;
  feelsPressure = true;
  view = { scale: 0.5, x: 0, y: 0 };
  begin.mockReset();
  zoom.mockReset();
  move.mockReset();
});

describe('drawing and selecting', () => {
  test.each([false, true])('begin with the press (selecting: %j)', (isSelectTool) => {
    isSelecting = isSelectTool;
    start().press(at(10, 10));
    expect(begin).toHaveBeenCalled();
  });

  test.each([false, true])('do not begin with a pinch, or with moving (selecting: %j)', (isSelectTool) => {
    isSelecting = isSelectTool;
    const gestures = start();
    gestures.press(finger(1, 100, 100));
    gestures.move(finger(1, 102, 100));
    gestures.press(finger(2, 200, 100));
    gestures.move(finger(2, 300, 100));
    gestures.release({ id: 1 });
    gestures.release({ id: 2 });
    isMoving = true;
    gestures.press(at(10, 10));
    gestures.move(at(40, 40));
    gestures.release({ id: 1 });
    expect(begin).not.toHaveBeenCalled();
  });

  test.each([false, true])('begin with a finger that moves or taps (selecting: %j)', (isSelectTool) => {
    isSelecting = isSelectTool;
    const gestures = start();
    gestures.press(finger(1, 100, 100));
    gestures.move(finger(1, 130, 130));
    expect(begin).toHaveBeenCalled();
    gestures.release({ id: 1 });
    begin.mockReset();
    gestures.press(finger(1, 100, 100));
    gestures.release({ id: 1 });
    expect(begin).toHaveBeenCalled();
  });
});

describe('one pointer', () => {
  test('draws a stroke in image pixels, as wide as the brush on the screen', () => {
    const gestures = start();
    gestures.press(at(10, 10));
    gestures.move(at(20, 10));
    gestures.move(at(30, 25));
    expect(active?.points).toEqual([20, 20, 40, 20, 60, 50]);
    gestures.release({ id: 1 });
    expect(committed).toEqual([{ kind: 'paint', size: 40, points: [20, 20, 40, 20, 60, 50] }]);
    expect(active).toBeNull();
  });

  test('draws finer when zoomed in', () => {
    view = { scale: 4, x: -100, y: -200 };
    const gestures = start();
    gestures.press(at(100, 100));
    gestures.move(at(120, 100));
    gestures.release({ id: 1 });
    expect(committed).toEqual([{ kind: 'paint', size: 5, points: [50, 75, 55, 75] }]);
  });

  test('a click is a dot', () => {
    const gestures = start();
    gestures.press(at(10, 10));
    gestures.move(at(10.5, 10));
    gestures.release({ id: 1 });
    expect(committed.map(pointsOf)).toEqual([[20, 20]]);
  });

  test('includes the points the browser coalesced into one event', () => {
    const gestures = start();
    gestures.press(at(0, 0));
    gestures.move(at(30, 0), [
      { x: 10, y: 0 },
      { x: 20, y: 5 },
      { x: 30, y: 0 },
    ]);
    expect(active?.points).toEqual([0, 0, 20, 0, 40, 10, 60, 0]);
  });

  test('draws a straight line while Shift is down', () => {
    const gestures = start();
    gestures.press(at(0, 0));
    gestures.move(at(10, 0));
    gestures.move(at(20, 7, { isShift: true }));
    gestures.move(at(50, 30, { isShift: true }));
    expect(active?.points).toEqual([0, 0, 20, 0, 100, 60]);
    gestures.move(at(60, 30));
    gestures.release({ id: 1 });
    expect(committed[0]).toMatchObject({ points: [0, 0, 20, 0, 100, 60, 120, 60] });
  });

  test('a lasso selects what its line surrounds; a click selects nothing', () => {
    isLasso = true;
    const gestures = start();
    gestures.press(at(0, 0));
    gestures.release({ id: 1 });
    expect(committed).toEqual([]);
    gestures.press(at(0, 0));
    for (const [x, y] of [
      [4, 0],
      [4, 2],
      [0, 2],
    ] as const) {
      gestures.move(at(x, y));
    }
    gestures.release({ id: 1 });
    const spans = [0, 1, 2, 3].flatMap((y) => [y, 0, 8]);
    expect(committed).toEqual([{ kind: 'area', spans }]);
  });

  test('a lasso takes away with the eraser end of a pen', () => {
    isLasso = true;
    const gestures = start();
    gestures.press(pen(0, 0, 32));
    gestures.move(pen(4, 0, 32));
    gestures.move(pen(4, 2, 32));
    gestures.release({ id: 9 });
    expect(committed).toMatchObject([{ kind: 'area', erases: true }]);
  });

  test('erases with the eraser, and with the eraser end of a pen', () => {
    kind = 'erase';
    const gestures = start();
    gestures.press(at(10, 10));
    gestures.release({ id: 1 });
    kind = 'paint';
    gestures.press(pen(10, 10, 32));
    gestures.release({ id: 9 });
    expect(committed.map((stroke) => stroke.kind)).toEqual(['erase', 'erase']);
  });

  test('moves the image with the middle button, and in move mode', () => {
    const gestures = start();
    gestures.press(at(10, 10, { button: 1, buttons: 4 }));
    gestures.move(at(15, 12));
    gestures.release({ id: 1 });
    isMoving = true;
    gestures.press(at(0, 0));
    gestures.move(at(-3, 4));
    gestures.release({ id: 1 });
    expect(move.mock.calls).toEqual([
      [5, 2],
      [-3, 4],
    ]);
    expect(committed).toEqual([]);
  });

  test('ignores the right button', () => {
    const gestures = start();
    gestures.press(at(10, 10, { button: 2, buttons: 2 }));
    gestures.move(at(40, 40));
    gestures.release({ id: 1 });
    expect(committed).toEqual([]);
  });

  test('discards a stroke that the system cancels', () => {
    const gestures = start();
    gestures.press(finger(1, 0, 0));
    gestures.move(finger(1, 100, 0));
    gestures.cancel({ id: 1 });
    expect(committed).toEqual([]);
    expect(active).toBeNull();
  });
});

describe('two fingers', () => {
  test('zoom and pan, and leave no stroke behind', () => {
    const gestures = start();
    gestures.press(finger(1, 100, 100));
    gestures.press(finger(2, 200, 100));
    gestures.move(finger(2, 300, 100));
    expect(zoom).toHaveBeenCalledWith(2, { x: 150, y: 100 });
    expect(move).toHaveBeenCalledWith(50, 0);
    gestures.release({ id: 2 });
    // The remaining finger does not start to draw.
    gestures.move(finger(1, 160, 160));
    gestures.release({ id: 1 });
    expect(committed).toEqual([]);
  });

  test('keep a long stroke drawn before the second finger came down', () => {
    const gestures = start();
    gestures.press(finger(1, 0, 0));
    gestures.move(finger(1, 60, 0));
    gestures.press(finger(2, 200, 100));
    expect(committed).toHaveLength(1);
  });

  test('a third finger changes nothing', () => {
    const gestures = start();
    gestures.press(finger(1, 0, 0));
    gestures.press(finger(2, 100, 0));
    gestures.press(finger(3, 50, 50));
    gestures.move(finger(3, 90, 90));
    expect(zoom).not.toHaveBeenCalled();
  });

  test('after a pinch, one finger draws again', () => {
    const gestures = start();
    gestures.press(finger(1, 0, 0));
    gestures.press(finger(2, 100, 0));
    gestures.release({ id: 1 });
    gestures.release({ id: 2 });
    gestures.press(finger(4, 10, 10));
    gestures.release({ id: 4 });
    expect(committed).toHaveLength(1);
  });
});

describe('a pen', () => {
  test('draws on while the hand rests on the screen', () => {
    const gestures = start();
    gestures.press(pen(0, 0));
    gestures.press(finger(1, 300, 300));
    gestures.move(finger(1, 320, 320));
    gestures.move(pen(30, 0));
    gestures.release({ id: 1 });
    gestures.release({ id: 9 });
    expect(committed.map(pointsOf)).toEqual([[0, 0, 60, 0]]);
    expect(zoom).not.toHaveBeenCalled();
  });

  test('takes over from a hand that touched first', () => {
    const gestures = start();
    gestures.press(finger(1, 300, 300));
    gestures.move(finger(1, 340, 300));
    gestures.press(pen(0, 0));
    gestures.move(pen(30, 0));
    gestures.release({ id: 9 });
    gestures.release({ id: 1 });
    expect(committed.map(pointsOf)).toEqual([[0, 0, 60, 0]]);
  });
});

describe('a key', () => {
  const key = (x: number, y: number) => at(x, y, { id: -1, type: 'key' });

  test('started a stroke that the mouse ends, and then draws its own', () => {
    const gestures = start();
    gestures.press(key(0, 0));
    gestures.move(key(10, 0));
    gestures.press(at(50, 50));
    gestures.move(at(60, 50));
    gestures.release({ id: 1 });
    expect(committed.map(pointsOf)).toEqual([
      [0, 0, 20, 0],
      [100, 100, 120, 100],
    ]);
    expect(gestures.isDown(-1)).toBe(false);
    expect(zoom).not.toHaveBeenCalled();
  });

  test('does nothing while the mouse draws', () => {
    const gestures = start();
    gestures.press(at(0, 0));
    gestures.press(key(90, 90));
    gestures.move(at(10, 0));
    gestures.release({ id: 1 });
    expect(committed.map(pointsOf)).toEqual([[0, 0, 20, 0]]);
    expect(gestures.isDown(-1)).toBe(false);
  });
});

describe('the select tool', () => {
  beforeEach(() => {
    isSelecting = true;
  });

  test('picks a point with a click, even if the hand trembles', () => {
    const gestures = start();
    gestures.press(at(10, 20));
    gestures.move(at(13, 22));
    expect(activeBox).toBeNull();
    gestures.release({ id: 1 });
    expect(picked).toEqual([{ at: { x: 10, y: 20 }, takesAway: false }]);
    expect(committed).toEqual([]);
  });

  test('takes away with Alt or with the eraser of a pen', () => {
    const gestures = start();
    gestures.press(at(10, 20, { alt: true }));
    gestures.release({ id: 1 });
    gestures.press({ ...pen(30, 40, 32), button: 5 });
    gestures.release({ id: 9 });
    gestures.press(at(50, 60, { alt: true }));
    gestures.move(at(70, 80));
    gestures.release({ id: 1 });
    expect(picked).toEqual([
      { at: { x: 10, y: 20 }, takesAway: true },
      { at: { x: 30, y: 40 }, takesAway: true },
      { box: { x: 50, y: 60, width: 20, height: 20 }, takesAway: true },
    ]);
  });

  test('picks a box with a drag in any direction', () => {
    const gestures = start();
    gestures.press(at(50, 60));
    gestures.move(at(20, 10));
    expect(activeBox).toEqual({ x: 20, y: 10, width: 30, height: 50 });
    gestures.release({ id: 1 });
    expect(activeBox).toBeNull();
    expect(picked).toEqual([{ box: { x: 20, y: 10, width: 30, height: 50 }, takesAway: false }]);
  });

  test('picks nothing when a second finger starts a pinch, or the system takes the pointer away', () => {
    const gestures = start();
    gestures.press(finger(1, 10, 10));
    gestures.press(finger(2, 50, 50));
    gestures.release({ id: 1 });
    gestures.release({ id: 2 });
    gestures.press(at(10, 10));
    gestures.cancel({ id: 1 });
    expect(picked).toEqual([]);
  });

  test('leaves the middle button to moving', () => {
    const gestures = start();
    gestures.press(at(10, 10, { button: 1 }));
    gestures.move(at(30, 10, { button: 1 }));
    gestures.release({ id: 1 });
    expect(picked).toEqual([]);
    expect(move).toHaveBeenCalledWith(20, 0);
  });
});

describe('the pressure of a pen', () => {
  const pressed = (x: number, pressure: number, type = 'pen') => at(x, 0, { id: 9, type, pressure });
  const widthsOf = () => committed.map((mark) => mark.kind !== 'area' && mark.widths);

  test('varies the width of the line within a stroke, down to 40 % of the brush', () => {
    const gestures = start();
    gestures.press(pressed(0, 0));
    gestures.move(pressed(20, 0.75), [pressed(10, 0.5), pressed(20, 0.75)]);
    gestures.move(pressed(30, 1));
    gestures.move(pressed(40, 0));
    gestures.release({ id: 9 });
    expect(committed).toEqual([
      {
        kind: 'paint',
        size: 40,
        points: [0, 0, 20, 0, 40, 0, 60, 0, 80, 0],
        widths: [16, 28, 34, 40, 16],
      },
    ]);
  });

  test('also counts on a straight line and for the eraser of a pen', () => {
    const gestures = start();
    gestures.press({ ...pressed(0, 0.25), button: 5, buttons: 32 });
    gestures.move({ ...pressed(10, 0.3), isShift: true });
    gestures.move({ ...pressed(30, 0.75), isShift: true });
    gestures.release({ id: 9 });
    expect(committed).toEqual([{ kind: 'erase', size: 40, points: [0, 0, 60, 0], widths: [22, 34] }]);
  });

  test('changes nothing for pens without it, for mouse and touch, and for the lasso', () => {
    const gestures = start();
    for (const [type, pressure] of [
      ['pen', 0.5],
      ['mouse', 0.5],
      ['touch', 0.3],
    ] as const) {
      gestures.press(pressed(0, pressure, type));
      gestures.move(pressed(20, pressure, type));
      gestures.release({ id: 9 });
    }
    feelsPressure = false;
    gestures.press(pressed(0, 0.2));
    gestures.release({ id: 9 });
    expect(widthsOf()).toEqual([undefined, undefined, undefined, undefined]);
    isLasso = true;
    feelsPressure = true;
    gestures.press(pressed(0, 0.2));
    expect(active?.widths).toBeUndefined();
  });
});
