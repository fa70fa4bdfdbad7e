import type { Stroke } from './marks';
import { type Point, toImage, type View } from './view';

/** What of a pointer event matters here; places are in the frame's pixels. */
export type Pointer = Point & { id: number; type: string; button: number; buttons: number };

/** What the gestures act on. */
export type Surface = {
  /** How the image lies now, and the ways to change that. */
  control: {
    readonly view: View;
    zoom: (factor: number, anchor: Point) => void;
    move: (dx: number, dy: number) => void;
  };
  brush: () => { kind: Stroke['kind']; size: number };
  /** Whether the next press moves the image instead of drawing on it. */
  isMoving: () => boolean;
  /** The stroke under way, for the eyes only; null when it ends. */
  setDraft: (stroke: Stroke | null) => void;
  commit: (stroke: Stroke) => void;
};

/** Screen pixels between two points of a stroke; closer ones are only noise. */
const LEAST_STEP = 1.5;
/** A touch that drew less than this before the second finger came was no stroke. */
const SHORT = 24;
/** How a pen says that its other end is down. */
const PEN_ERASER = 32;
const MIDDLE_BUTTON = 1;

/**
 * Mouse, finger and pen: one pointer draws, two fingers zoom and move. While a pen is down the hand that
 * holds it may lie on the screen: its touches count for nothing.
 */
export function createGestures(surface: Surface) {
  const { control } = surface;
  const down = new Map<number, Pointer>();
  let mode: 'idle' | 'draw' | 'move' | 'pinch' | 'over' = 'idle';
  let stroke: Stroke | null = null;
  let drawn = 0;
  let last: Point = { x: 0, y: 0 };

  const pointers = () => [...down.values()];

  function press(pointer: Pointer) {
    if (pointer.type === 'touch' && pointers().some(({ type }) => type === 'pen')) return;
    if (pointer.type === 'pen' && pointers().some(({ type }) => type === 'touch')) {
      drop();
      down.clear();
    }
    down.set(pointer.id, pointer);
    if (down.size > 1) return beginPinch();
    last = pointer;
    if (pointer.button === MIDDLE_BUTTON || surface.isMoving()) mode = 'move';
    else if (pointer.button === 0 || pointer.buttons & PEN_ERASER) beginStroke(pointer);
    else mode = 'over';
  }

  function move(pointer: Pointer, between: Point[] = [pointer]) {
    const before = down.get(pointer.id);
    if (!before) return;
    if (mode === 'pinch') pinch(before, pointer);
    down.set(pointer.id, pointer);
    if (mode === 'draw') draw(between);
    if (mode === 'move') {
      control.move(pointer.x - last.x, pointer.y - last.y);
      last = pointer;
    }
  }

  function release({ id }: { id: number }) {
    if (!down.delete(id)) return;
    if (mode === 'draw') finish();
    // The finger that stays after a pinch does not begin to draw.
    mode = down.size === 0 ? 'idle' : 'over';
  }

  /** The system took the pointer away: what it drew was not meant. */
  function cancel({ id }: { id: number }) {
    if (!down.delete(id)) return;
    drop();
    mode = down.size === 0 ? 'idle' : 'over';
  }

  function beginStroke(pointer: Pointer) {
    const { kind, size } = surface.brush();
    mode = 'draw';
    drawn = 0;
    stroke = {
      kind: pointer.buttons & PEN_ERASER ? 'erase' : kind,
      size: rounded(size / control.view.scale),
      points: place(pointer),
    };
    surface.setDraft(stroke);
  }

  function draw(points: Point[]) {
    if (!stroke) return;
    const added: number[] = [];
    for (const point of points) {
      const step = Math.hypot(point.x - last.x, point.y - last.y);
      if (step < LEAST_STEP) continue;
      drawn += step;
      last = point;
      added.push(...place(point));
    }
    if (added.length === 0) return;
    stroke = { ...stroke, points: [...stroke.points, ...added] };
    surface.setDraft(stroke);
  }

  function finish() {
    if (stroke) surface.commit(stroke);
    drop();
  }

  function drop() {
    if (stroke) surface.setDraft(null);
    stroke = null;
  }

  function beginPinch() {
    if (mode === 'draw' && drawn >= SHORT) finish();
    else drop();
    mode = 'pinch';
  }

  function pinch(before: Pointer, now: Pointer) {
    const [first, second] = pointers();
    if (!first || !second) return;
    const other = first.id === now.id ? second : first;
    if (other.id === now.id || (now.id !== first.id && now.id !== second.id)) return;
    const factor = distance(now, other) / Math.max(1, distance(before, other));
    const from = middle(before, other);
    const to = middle(now, other);
    control.zoom(factor, from);
    control.move(to.x - from.x, to.y - from.y);
  }

  function place(point: Point): number[] {
    const { x, y } = toImage(control.view, point);
    return [rounded(x), rounded(y)];
  }

  return { press, move, release, cancel, isDown: (id: number) => down.has(id) };
}

/** A hundredth of a pixel is far finer than any hand, and short to keep. */
const rounded = (length: number) => Math.round(length * 100) / 100;

const distance = (a: Point, b: Point) => Math.hypot(a.x - b.x, a.y - b.y);
const middle = (a: Point, b: Point) => ({ x: (a.x + b.x) / 2, y: (a.y + b.y) / 2 });
