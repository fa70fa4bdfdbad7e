import type { KeyboardEvent } from 'react';

/** Lets the arrow keys lead through the buttons or links of a grid, as they lie on the screen. */
export function moveInGrid(event: KeyboardEvent<HTMLElement>) {
  const items = Array.from(event.currentTarget.querySelectorAll<HTMLElement>('a, button'));
  const at = items.indexOf(event.target as HTMLElement);
  const next = items[targetOf(event.key, at, items.length, columnsOf(items))];
  if (at < 0 || !next) return;
  event.preventDefault();
  next.focus();
}

function targetOf(key: string, at: number, count: number, columns: number): number {
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

/** How many lie in the first row. */
function columnsOf(items: HTMLElement[]): number {
  const top = items[0]?.getBoundingClientRect().top;
  const below = items.findIndex((item) => item.getBoundingClientRect().top !== top);
  return below < 0 ? items.length : below;
}
