import type { Pointer, Sample } from './pointer';
import type { Point, View } from './view';

/** The view that the gestures change. */
export type PanZoomTarget = {
  readonly view: View;
  zoom: (factor: number, anchor: Point) => void;
  move: (dx: number, dy: number) => void;
};

/** The reaction to a single pointer while it is down. */
export type Drag = {
  /** `points` are the positions since the last call, oldest first. */
  move: (points: Sample[], pointer: Pointer) => void;
  end: () => void;
  /** The browser canceled the pointer: discards the drag. */
  cancel: () => void;
  /** A second finger came down and starts a pinch: ends or discards the drag. */
  interrupt: () => void;
};

/**
 * Turns mouse, touch, pen and keyboard input into drags and pinches: one pointer drags, two fingers zoom and pan. While a
 * pen is down, touches are ignored: the hand holding the pen may rest on the screen. A pointer ends a drag that a key
 * started; keys are ignored while a pointer is down.
 *
 * `startDrag` decides what a single pointer does; null ignores the press.
 */
export function createGestures(
  target: PanZoomTarget,
  startDrag: (pointer: Pointer) => Drag | null = (pointer) => pan(target, pointer),
) {
  const down = new Map<number, Pointer>();
  let mode: 'idle' | 'drag' | 'pinch' | 'ignore' = 'idle';
  let drag: Drag | null = null;

  const pointers = () => [...down.values()];

  function press(pointer: Pointer) {
    // A pinch takes two pointers of the same type.
    const other = pointers().find(({ type }) => type !== pointer.type)?.type;
    if (other === 'key') finish('end');
    else if (other === 'touch' && pointer.type === 'pen') finish('cancel');
    else if (other) return;
    if (other) down.clear();
    down.set(pointer.id, pointer);
    if (down.size > 1) {
      finish('interrupt');
      mode = 'pinch';
      return;
    }
    drag = startDrag(pointer);
    mode = drag ? 'drag' : 'ignore';
  }

  /** `points` are the positions the browser coalesced into this event. */
  function move(pointer: Pointer, points: Sample[] = [pointer]) {
    const before = down.get(pointer.id);
    if (!before) return;
    if (mode === 'pinch') pinch(before, pointer);
    down.set(pointer.id, pointer);
    if (mode === 'drag') drag?.move(points, pointer);
  }

  function release({ id }: { id: number }) {
    if (!down.delete(id)) return;
    finish('end');
    settle();
  }

  function cancel({ id }: { id: number }) {
    if (!down.delete(id)) return;
    finish('cancel');
    settle();
  }

  function finish(how: 'end' | 'cancel' | 'interrupt') {
    drag?.[how]();
    drag = null;
  }

  /** After a pinch, the finger that stays down does not start a drag. */
  function settle() {
    mode = down.size === 0 ? 'idle' : 'ignore';
  }

  function pinch(before: Pointer, now: Pointer) {
    const [first, second] = pointers();
    if (!first || !second) return;
    const other = first.id === now.id ? second : first;
    // A third finger changes nothing.
    if (now.id !== first.id && now.id !== second.id) return;
    const factor = distance(now, other) / Math.max(1, distance(before, other));
    const from = middle(before, other);
    const to = middle(now, other);
    target.zoom(factor, from);
    target.move(to.x - from.x, to.y - from.y);
  }

  return { press, move, release, cancel, isDown: (id: number) => down.has(id) };
}

/** A drag that moves the view. */
export function pan(target: PanZoomTarget, start: Point): Drag {
  let last = start;
  const stop = () => {};
  return {
    move: (points) => {
      const now = points.at(-1) ?? last;
      target.move(now.x - last.x, now.y - last.y);
      last = now;
    },
    end: stop,
    cancel: stop,
    interrupt: stop,
  };
}

const distance = (a: Point, b: Point) => Math.hypot(a.x - b.x, a.y - b.y);
const middle = (a: Point, b: Point) => ({ x: (a.x + b.x) / 2, y: (a.y + b.y) / 2 });
