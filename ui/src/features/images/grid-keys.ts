import type { KeyboardEvent } from 'react';

/** Moves the focus through the links or buttons of a grid with the arrow keys, Home and End. */
export function moveInGrid(event: KeyboardEvent<HTMLElement>) {
  const items = Array.from(event.currentTarget.querySelectorAll<HTMLElement>('a, button'));
  const at = items.indexOf(event.target as HTMLElement);
  const next = items[targetIndex(event.key, at, items.length, countColumns(items))];
  if (at < 0 || !next) return;
  event.preventDefault();
  next.focus();
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
