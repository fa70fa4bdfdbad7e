// The drawing of the user, as plain data. Coordinates and sizes are image pixels, so neither the zoom nor the window's
// width changes a mask.

/** A line of the brush; a single point is a dot. `points` is x, y, x, y, …; `size` is the width. */
export type Stroke = {
  kind: 'paint' | 'erase';
  size: number;
  points: number[];
  /** Where a pen pressed more or less: the width of the line to each point. Instead of `size`. */
  widths?: number[];
  startsNewMask?: boolean;
};

/** An imported or selected area. `spans` is row, from, to (exclusive), row, from, to, … */
export type Area = {
  kind: 'area';
  spans: number[];
  startsNewMask?: boolean;
  /** Takes the area away instead of adding it. */
  erases?: boolean;
  /** What selected it; the next click continues from here. */
  clicks?: Clicks;
  /** Replaces the area before it: the same selection with one more click. */
  refines?: boolean;
};

/** A pixel of the image. */
export type ImagePoint = { x: number; y: number };

/** The request of a selection: the object at the positive points or in the box, without the parts that negative points
 * mark. */
export type Clicks = {
  positive: ImagePoint[];
  negative: ImagePoint[];
  box?: ImagePoint & { width: number; height: number };
  /** Selects the subject of the picture. */
  subject?: boolean;
};

type Clear = { kind: 'clear' };

/** One undo step. With `startsNewMask`, earlier marks no longer count. */
export type Mark = Stroke | Area | Clear;

export type Shape = Stroke | Area;

export type History = { done: Mark[]; undone: Mark[] };

export const emptyHistory: History = { done: [], undone: [] };

export function add({ done }: History, mark: Mark): History {
  return { done: [...done, mark], undone: [] };
}

export function undo({ done, undone }: History): History {
  const last = done.at(-1);
  return last ? { done: done.slice(0, -1), undone: [...undone, last] } : { done, undone };
}

export function redo({ done, undone }: History): History {
  const next = undone.at(-1);
  return next ? { done: [...done, next], undone: undone.slice(0, -1) } : { done, undone };
}

/** The shapes of the current mask: everything since it was last cleared or started over. */
export function shapesOf(done: Mark[]): Shape[] {
  const start = done.findLastIndex((mark) => mark.kind === 'clear' || mark.startsNewMask);
  const current = done.slice(Math.max(0, start));
  const isRefined = (index: number) => {
    const next = current[index + 1];
    return next?.kind === 'area' && next.refines === true;
  };
  return current.filter((mark, index): mark is Shape => mark.kind !== 'clear' && !isRefined(index));
}

/** The clicks of the selection that the last mark made, which the next click continues. */
export function lastClicks(done: Mark[]): Clicks | null {
  const last = done.at(-1);
  return last?.kind === 'area' && !last.erases ? (last.clicks ?? null) : null;
}

/** Whether anything was drawn. Erasing may have removed it again; only the finished mask shows that. */
export function isDrawn(shapes: Shape[]): boolean {
  return shapes.some((shape) => shape.kind === 'paint' || (shape.kind === 'area' && !shape.erases));
}
