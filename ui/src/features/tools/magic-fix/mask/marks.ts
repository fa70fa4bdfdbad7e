// What a person has drawn, as plain data. All places and sizes are in pixels of the image, so that neither
// the zoom nor the window's width changes a mask.

/** A line under the brush; one point alone is a dot. `points` is x, y, x, y, … and `size` the width. */
export type Stroke = { kind: 'paint' | 'erase'; size: number; points: number[]; isFresh?: boolean };

/** An area from a file: `runs` is row, from, to (not included), row, from, to, … */
export type Area = { kind: 'area'; runs: number[]; isFresh?: boolean };

type Clear = { kind: 'clear' };

/** One step that can be undone. A fresh one begins a new mask: what came before it does not count. */
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

/** What makes up the mask now: everything since it was last begun anew. */
export function shapesOf(done: Mark[]): Shape[] {
  const start = done.findLastIndex((mark) => mark.kind === 'clear' || mark.isFresh);
  return done.slice(Math.max(0, start)).filter((mark) => mark.kind !== 'clear');
}

/** Whether something was drawn. Erasing may have taken it away again; only the finished mask tells. */
export function isDrawn(shapes: Shape[]): boolean {
  return shapes.some(({ kind }) => kind !== 'erase');
}
