import { type KeyboardEvent, type PointerEvent, useEffect, useRef, useState } from 'react';
import { capturePointer, type Pointer, pointIn, sampleIn, toPointer } from '@/components/pan-zoom/pointer';
import type { ViewControl } from '@/components/pan-zoom/use-view';
import type { Point } from '@/components/pan-zoom/view';
import { type Box, createMaskGestures, type DrawingBrush, type Picked } from './gestures';
import type { Area, Stroke } from './marks';

/** The pointer id of the keyboard, which draws like any other pointer. */
const KEYBOARD = -1;
/** Screen pixels per press of an arrow key, without and with Shift. */
const KEY_STEP = 12;
const FINE_STEP = 2;

const arrows: Record<string, [x: number, y: number]> = {
  ArrowLeft: [-1, 0],
  ArrowRight: [1, 0],
  ArrowUp: [0, -1],
  ArrowDown: [0, 1],
};

type Drawing = {
  brush: () => DrawingBrush;
  /** Whether the next press moves the picture. */
  isMoving: () => boolean;
  /** Whether the next press selects. */
  isSelecting?: () => boolean;
  /** A press begins to draw or select. */
  onBegin?: () => void;
  onStroke: (mark: Stroke | Area) => void;
  onPick?: (picked: Picked) => void;
};

/** Connects mouse, touch, pen and keyboard to the mask gestures. */
export function useDrawing(control: ViewControl, drawing: Drawing) {
  const latest = useRef(drawing);
  useEffect(() => {
    latest.current = drawing;
  });
  const isSelecting = () => latest.current.isSelecting?.() ?? false;
  const [activeStroke, setActiveStroke] = useState<Stroke | null>(null);
  const [activeBox, setActiveBox] = useState<Box | null>(null);
  /** The circle that shows the brush's position and size; moved without a render. */
  const ring = useRef<HTMLDivElement>(null);
  const cursor = useRef<Point | null>(null);
  // Created once, because it tracks the pointers that are down.
  const [gestures] = useState(() =>
    createMaskGestures({
      control,
      brush: () => latest.current.brush(),
      isMoving: () => latest.current.isMoving(),
      begin: () => latest.current.onBegin?.(),
      setActiveStroke,
      commit: (mark) => latest.current.onStroke(mark),
      isSelecting,
      setActiveBox,
      select: (picked) => latest.current.onPick?.(picked),
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
    capturePointer(event);
    gestures.press(toPointer(event));
  }

  function move(event: PointerEvent<HTMLElement>) {
    // A finger would cover the ring.
    showRing(event.pointerType === 'touch' ? null : pointIn(event.currentTarget, event));
    const coalesced = event.nativeEvent.getCoalescedEvents?.() ?? [];
    const positions = coalesced.length > 0 ? coalesced : [event];
    gestures.move(
      toPointer(event),
      positions.map((position) => sampleIn(event.currentTarget, position)),
    );
  }

  function key(event: KeyboardEvent) {
    const at = cursor.current ?? control.middle;
    const pointer: Pointer = { id: KEYBOARD, type: 'key', button: 0, buttons: 1, alt: event.altKey, ...at };
    if (event.key === 'Enter') {
      event.preventDefault();
      // A key that is held down would draw a dot with every repetition.
      if (event.repeat) return;
      showRing(at);
      if (gestures.isDown(KEYBOARD)) gestures.release(pointer);
      else gestures.press(pointer);
      // A stroke ends with another Enter, a click at once.
      if (isSelecting()) gestures.release(pointer);
    }
    const arrow = arrows[event.key];
    if (!arrow) return;
    event.preventDefault();
    const step = event.shiftKey ? FINE_STEP : KEY_STEP;
    const { x, y } = control.middle;
    const [toX, toY] = [at.x + arrow[0] * step, at.y + arrow[1] * step];
    const next = { x: Math.min(Math.max(toX, 0), 2 * x), y: Math.min(Math.max(toY, 0), 2 * y) };
    // At the edge of the frame, the picture moves instead of the brush.
    control.move(next.x - toX, next.y - toY);
    showRing(next);
    gestures.move({ ...pointer, ...next });
  }

  return {
    activeStroke,
    activeBox,
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
