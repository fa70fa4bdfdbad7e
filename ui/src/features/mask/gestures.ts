import { createGestures, type Drag, type PanZoomTarget, pan } from '@/components/pan-zoom/gestures';
import type { Pointer } from '@/components/pan-zoom/pointer';
import { type Point, toImage } from '@/components/pan-zoom/view';
import type { Stroke } from './marks';

/** What the gestures of the mask editor act on. */
type MaskSurface = {
  control: PanZoomTarget;
  /** `size` is in screen pixels. */
  brush: () => { kind: Stroke['kind']; size: number };
  /** Whether the next press moves the image instead of drawing on it. */
  isMoving: () => boolean;
  /** Shows the stroke in progress; null when it ends. */
  setActiveStroke: (stroke: Stroke | null) => void;
  commit: (stroke: Stroke) => void;
};

/** Screen pixels between two points of a stroke; closer points are noise. */
const MIN_STEP = 1.5;
/** A touch that drew less than this before a second finger came down was the start of a pinch. */
const MIN_STROKE = 24;
/** The bit in `buttons` for the eraser end of a pen. */
const PEN_ERASER = 32;
const MIDDLE_BUTTON = 1;

/** One pointer draws; the middle button pans; two fingers zoom and pan. */
export function createMaskGestures(surface: MaskSurface) {
  return createGestures(surface.control, (pointer) => {
    if (pointer.button === MIDDLE_BUTTON || surface.isMoving()) return pan(surface.control, pointer);
    const isEraser = (pointer.buttons & PEN_ERASER) !== 0;
    return pointer.button === 0 || isEraser ? draw(surface, pointer, isEraser) : null;
  });
}

function draw(surface: MaskSurface, start: Pointer, isEraser: boolean): Drag {
  const { control, brush, setActiveStroke, commit } = surface;
  const { kind, size } = brush();
  const place = (point: Point) => {
    const { x, y } = toImage(control.view, point);
    return [rounded(x), rounded(y)];
  };
  let last: Point = start;
  let length = 0;
  let stroke: Stroke = {
    kind: isEraser ? 'erase' : kind,
    size: rounded(size / control.view.scale),
    points: place(start),
  };
  setActiveStroke(stroke);

  function end() {
    commit(stroke);
    setActiveStroke(null);
  }

  return {
    move: (points) => {
      const added: number[] = [];
      for (const point of points) {
        const step = Math.hypot(point.x - last.x, point.y - last.y);
        if (step < MIN_STEP) continue;
        length += step;
        last = point;
        added.push(...place(point));
      }
      if (added.length === 0) return;
      stroke = { ...stroke, points: [...stroke.points, ...added] };
      setActiveStroke(stroke);
    },
    end,
    cancel: () => setActiveStroke(null),
    interrupt: () => (length >= MIN_STROKE ? end() : setActiveStroke(null)),
  };
}

/** Hundredths of a pixel: finer than any hand, and short when serialized. */
const rounded = (length: number) => Math.round(length * 100) / 100;
