import type { KeyboardEvent } from 'react';

/** A step through a grid, by positions. */
type Step = { from: number; to: number };

/**
 * Moves the focus through a grid with the arrow keys, Home and End: from checkbox to checkbox, otherwise through the
 * links or buttons. Returns the step; null for other keys.
 */
export function moveInGrid(event: KeyboardEvent<HTMLElement>): Step | null {
  const focused = event.target as HTMLElement;
  const kind = focused.matches('input') ? 'input' : 'a, button';
  const items = Array.from(event.currentTarget.querySelectorAll<HTMLElement>(kind));
  const from = items.indexOf(focused);
  const to = targetIndex(event.key, from, items.length, countColumns(items));
  const next = items[to];
  if (from < 0 || !next) return null;
  event.preventDefault();
  next.focus();
  return { from, to };
}

function targetIndex(key: string, at: number, count: number, columns: number): number {
  if (key === 'Home') return 0;
  if (key === 'End') return count - 1;
  const steps: Record<string, number> = {
    ArrowLeft: -1,
    ArrowRight: 1,
    ArrowUp: -columns,
    ArrowDown: columns,
  };
  const step = steps[key];
  return step === undefined ? -1 : at + step;
}

/** Counts the items in the first row. */
function countColumns(items: HTMLElement[]): number {
  const top = items[0]?.getBoundingClientRect().top;
  const below = items.findIndex((item) => item.getBoundingClientRect().top !== top);
  return below < 0 ? items.length : below;
}
