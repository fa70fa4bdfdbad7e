import { type KeyboardEvent, type ReactNode, useId, useState } from 'react';
import { classNames } from '@/lib/class-names';

type TabsProps = {
  label: string;
  tabs: { title: string; content: ReactNode }[];
  /** The index of the tab that is open at first. */
  first?: number;
};

// Up and down scroll the page: the tabs are side by side.
const steps: Record<string, number> = { ArrowRight: 1, ArrowLeft: -1 };

/** Arrow keys move between tabs; Tab moves on to the panel. */
export function Tabs({ label, tabs, first = 0 }: TabsProps) {
  const [selected, setSelected] = useState(first);
  const id = useId();
  // Three tabs fit side by side on a phone if longer ones get more room. One on a row of its own would look selected.
  const isRow = tabs.length === 3;

  function move(event: KeyboardEvent<HTMLDivElement>) {
    const ends: Record<string, number> = { Home: 0, End: tabs.length - 1 };
    const step = steps[event.key];
    const next = step ? (selected + step + tabs.length) % tabs.length : ends[event.key];
    if (next === undefined) return;
    event.preventDefault();
    setSelected(next);
    event.currentTarget.querySelectorAll<HTMLElement>('[role=tab]')[next]?.focus();
  }

  return (
    <div className="min-w-0">
      <div
        role="tablist"
        aria-label={label}
        onKeyDown={move}
        className={classNames(
          'gap-1 rounded-md border border-line bg-surface p-1 sm:flex sm:w-fit sm:flex-wrap',
          isRow ? 'grid grid-cols-[repeat(3,auto)]' : 'flex flex-wrap',
        )}
      >
        {tabs.map(({ title }, index) => (
          <button
            key={title}
            type="button"
            role="tab"
            id={`${id}-tab-${index}`}
            aria-selected={index === selected}
            aria-controls={`${id}-panel`}
            tabIndex={index === selected ? 0 : -1}
            onClick={() => setSelected(index)}
            className={classNames(
              'min-h-10 thumb:min-h-11 grow rounded-sm text-sm font-medium sm:grow-0 sm:px-3',
              isRow ? 'px-1' : 'px-3',
              index === selected ? 'bg-accent-wash text-accent' : 'text-soft hover:bg-sunken hover:text-ink',
            )}
          >
            {title}
          </button>
        ))}
      </div>
      <div
        role="tabpanel"
        id={`${id}-panel`}
        aria-labelledby={`${id}-tab-${selected}`}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: makes a panel without controls reachable.
        tabIndex={0}
        className="mt-4"
      >
        {tabs[selected]?.content}
      </div>
    </div>
  );
}
