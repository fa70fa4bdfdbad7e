import { createGestures, type Drag, type PanZoomTarget, pan } from '@/components/pan-zoom/gestures';
import type { Pointer, Sample } from '@/components/pan-zoom/pointer';
import { type Point, toImage } from '@/components/pan-zoom/view';
import { areaInside } from './area-inside';
import type { Area, Stroke } from './marks';

/** What the gestures of the mask editor act on. */
type MaskSurface = {
  control: PanZoomTarget;
  brush: () => DrawingBrush;
  /** Whether the next press moves the image instead of drawing on it. */
  isMoving: () => boolean;
  /** The user draws or selects, and has to see the mask. Not called for a touch that may become a pinch. */
  begin: () => void;
  /** Shows the stroke in progress; null when it ends. */
  setActiveStroke: (stroke: Stroke | null) => void;
  commit: (mark: Stroke | Area) => void;
  /** Whether a press selects instead of drawing. */
  isSelecting: () => boolean;
  /** Shows the box that is being dragged; null when it ends. */
  setActiveBox: (box: Box | null) => void;
  select: (picked: Picked) => void;
};

/** `size` is in screen pixels. A lasso selects the area inside the line. */
export type DrawingBrush = {
  kind: Stroke['kind'];
  size: number;
  isLasso?: boolean;
  /** Whether a pen that presses less draws a thinner line. */
  feelsPressure?: boolean;
};

/** A rectangle in pixels of the frame. */
export type Box = Point & { width: number; height: number };

/** The picked points or box, in pixels of the frame. */
export type Picked = ({ at: Point } | { box: Box }) & { takesAway: boolean };

/** Screen pixels between two points of a stroke; closer points are noise. */
const MIN_STEP = 1.5;
/** A touch that drew less than this before a second finger came down was the start of a pinch. */
const MIN_STROKE = 24;
/** The width of the line of a lasso, in screen pixels. */
const LASSO_WIDTH = 2;
/** The share of the brush that a pen draws without pressure. */
const LEAST_SHARE = 0.4;
/** The pressure that browsers report for pens that measure none. */
const UNKNOWN_PRESSURE = 0.5;
/** The bit in `buttons` for the eraser end of a pen. */
const PEN_ERASER = 32;
const MIDDLE_BUTTON = 1;
/** Screen pixels from which a drag is a box rather than a click. */
const MIN_BOX = 8;

/** One pointer draws; the middle button pans; two fingers zoom and pan. */
export function createMaskGestures(surface: MaskSurface) {
  return createGestures(surface.control, (pointer) => {
    if (pointer.button === MIDDLE_BUTTON || surface.isMoving()) return pan(surface.control, pointer);
    const isEraser = (pointer.buttons & PEN_ERASER) !== 0;
    if (pointer.button !== 0 && !isEraser) return null;
    return surface.isSelecting() ? pick(surface, pointer, isEraser) : draw(surface, pointer, isEraser);
  });
}

/** A click picks a point, a drag picks a box. With Alt or the eraser of a pen, it takes away. */
function pick({ begin, setActiveBox, select }: MaskSurface, start: Pointer, isEraser: boolean): Drag {
  let box: Box | null = null;
  const stop = () => setActiveBox(null);
  if (start.type !== 'touch') begin();
  return {
    move: (points) => {
      const now = points.at(-1) ?? start;
      const [width, height] = [Math.abs(now.x - start.x), Math.abs(now.y - start.y)];
      const isBox = Math.min(width, height) >= MIN_BOX;
      box = isBox ? { x: Math.min(now.x, start.x), y: Math.min(now.y, start.y), width, height } : null;
      if (box) begin();
      setActiveBox(box);
    },
    end: () => {
      begin();
      stop();
      const at = { x: start.x, y: start.y };
      select({ ...(box ? { box } : { at }), takesAway: isEraser || start.alt === true });
    },
    cancel: stop,
    interrupt: stop,
  };
}

function draw(surface: MaskSurface, start: Pointer, isEraser: boolean): Drag {
  const { control, begin, setActiveStroke, commit } = surface;
  const { kind, size, isLasso, feelsPressure } = surface.brush();
  const width = rounded((isLasso ? LASSO_WIDTH : size) / control.view.scale);
  const isPen = start.type === 'pen' && feelsPressure && !isLasso;
  const place = (point: Point) => {
    const { x, y } = toImage(control.view, point);
    return [rounded(x), rounded(y)];
  };
  const widthAt = (pressure: number) => rounded(width * (LEAST_SHARE + (1 - LEAST_SHARE) * pressure));
  let last: Point = start;
  let length = 0;
  let stroke: Stroke = { kind: isEraser ? 'erase' : kind, size: width, points: [] };
  let pressures: number[] = [];
  /** The number of points up to where Shift was pressed, from which the line is straight. */
  let fixed: number | null = null;
  extend([start]);

  /** Adds points after the first `kept` ones. */
  function extend(added: Sample[], kept = pressures.length) {
    const points = [...stroke.points.slice(0, 2 * kept), ...added.flatMap(place)];
    pressures = [...pressures.slice(0, kept), ...added.map(({ pressure = 0 }) => pressure)];
    const isMeasured = isPen && pressures.some((pressure) => pressure !== 0 && pressure !== UNKNOWN_PRESSURE);
    const widths = isMeasured && { widths: pressures.map(widthAt) };
    stroke = { kind: stroke.kind, size: width, points, ...widths };
    if (start.type !== 'touch' || length >= MIN_STROKE) begin();
    setActiveStroke(stroke);
  }

  function end() {
    begin();
    const mark = isLasso ? areaInside(stroke.points) : stroke;
    if (mark?.kind === 'area' && isEraser) mark.erases = true;
    if (mark) commit(mark);
    setActiveStroke(null);
  }

  return {
    move: (points, pointer) => {
      if (pointer.isShift) {
        const to = points.at(-1) ?? pointer;
        fixed ??= pressures.length;
        length += Math.hypot(to.x - last.x, to.y - last.y);
        last = to;
        return extend([to], fixed);
      }
      fixed = null;
      const added: Sample[] = [];
      for (const point of points) {
        const step = Math.hypot(point.x - last.x, point.y - last.y);
        if (step < MIN_STEP) continue;
        length += step;
        last = point;
        added.push(point);
      }
      if (added.length > 0) extend(added);
    },
    end,
    cancel: () => setActiveStroke(null),
    interrupt: () => (length >= MIN_STROKE ? end() : setActiveStroke(null)),
  };
}

/** Hundredths of a pixel: finer than any hand, and short when serialized. */
const rounded = (length: number) => Math.round(length * 100) / 100;
