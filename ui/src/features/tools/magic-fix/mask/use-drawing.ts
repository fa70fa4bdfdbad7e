import { type KeyboardEvent, type PointerEvent, type RefObject, useRef, useState } from 'react';
import { createGestures, type Pointer } from './gestures';
import type { Stroke } from './marks';
import { useMaskStore } from './mask-store';
import { capture, pointerOf, pointOf } from './pointer';
import type { ViewControl } from './use-view';
import type { Point } from './view';

/** The keyboard draws as one more pointer. */
const KEYBOARD = -1;
/** Screen pixels that an arrow key moves the brush; with Shift for the last bit. */
const KEY_STEP = 12;
const FINE_STEP = 2;

const arrows: Record<string, [x: number, y: number]> = {
  ArrowLeft: [-1, 0],
  ArrowRight: [1, 0],
  ArrowUp: [0, -1],
  ArrowDown: [0, 1],
};

/** Binds mouse, finger, pen and keyboard to the frame. */
export function useDrawing(
  control: ViewControl,
  isSpaceDown: RefObject<boolean>,
  onStroke: (stroke: Stroke) => void,
) {
  const [draft, setDraft] = useState<Stroke | null>(null);
  /** The circle that shows where and how wide the brush is; moved without a render. */
  const ring = useRef<HTMLDivElement>(null);
  const cursor = useRef<Point | null>(null);
  // Made once, because it remembers which pointers are down; all that it is given stays the same.
  const [gestures] = useState(() =>
    createGestures({
      control,
      brush: () => {
        const { brush, brushSize } = useMaskStore.getState();
        return { kind: brush === 'erase' ? 'erase' : 'paint', size: brushSize };
      },
      isMoving: () => useMaskStore.getState().brush === 'move' || isSpaceDown.current,
      setDraft,
      commit: onStroke,
    }),
  );

  function showRing(at: Point | null) {
    cursor.current = at;
    if (!ring.current) return;
    ring.current.hidden = !at;
    if (at) ring.current.style.translate = `${at.x}px ${at.y}px`;
  }

  function press(event: PointerEvent<HTMLElement>) {
    event.currentTarget.focus({ preventScroll: true });
    capture(event);
    gestures.press(pointerOf(event));
  }

  function move(event: PointerEvent<HTMLElement>) {
    // Under a finger there is nothing to be seen.
    showRing(event.pointerType === 'touch' ? null : pointOf(event, event.currentTarget));
    const between = event.nativeEvent.getCoalescedEvents?.() ?? [];
    const points = between.length > 0 ? between : [event];
    gestures.move(
      pointerOf(event),
      points.map((point) => pointOf(point, event.currentTarget)),
    );
  }

  function key(event: KeyboardEvent) {
    const at = cursor.current ?? control.middle;
    const pointer: Pointer = { id: KEYBOARD, type: 'key', button: 0, buttons: 1, ...at };
    if (event.key === 'Enter') {
      event.preventDefault();
      showRing(at);
      if (gestures.isDown(KEYBOARD)) gestures.release(pointer);
      else gestures.press(pointer);
    }
    const arrow = arrows[event.key];
    if (!arrow) return;
    event.preventDefault();
    const step = event.shiftKey ? FINE_STEP : KEY_STEP;
    const next = { x: at.x + arrow[0] * step, y: at.y + arrow[1] * step };
    showRing(next);
    gestures.move({ ...pointer, ...next });
  }

  return {
    draft,
    ring,
    handlers: {
      onPointerDown: press,
      onPointerMove: move,
      onPointerUp: (event: PointerEvent) => gestures.release({ id: event.pointerId }),
      onPointerCancel: (event: PointerEvent) => gestures.cancel({ id: event.pointerId }),
      onPointerLeave: () => showRing(null),
      onKeyDown: key,
      onBlur: () => {
        gestures.release({ id: KEYBOARD });
        showRing(null);
      },
    },
  };
}
