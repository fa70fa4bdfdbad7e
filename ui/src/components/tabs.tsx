import { type KeyboardEvent, type ReactNode, useId, useState } from 'react';
import { classNames } from '@/lib/class-names';

type TabsProps = { label: string; tabs: { title: string; content: ReactNode }[] };

const steps: Record<string, number> = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };

/** One panel of several. Arrow keys lead from tab to tab; one Tab leads on to the panel. */
export function Tabs({ label, tabs }: TabsProps) {
  const [chosen, setChosen] = useState(0);
  const id = useId();
  // Three have room beside each other on a phone; one of them in a row of its own would look like the chosen one.
  const isRow = tabs.length === 3;

  function move(event: KeyboardEvent<HTMLDivElement>) {
    const ends: Record<string, number> = { Home: 0, End: tabs.length - 1 };
    const step = steps[event.key];
    const next = step ? (chosen + step + tabs.length) % tabs.length : ends[event.key];
    if (next === undefined) return;
    event.preventDefault();
    setChosen(next);
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
          isRow ? 'grid grid-cols-3' : 'flex flex-wrap',
        )}
      >
        {tabs.map(({ title }, index) => (
          <button
            key={title}
            type="button"
            role="tab"
            id={`${id}-tab-${index}`}
            aria-selected={index === chosen}
            aria-controls={`${id}-panel`}
            tabIndex={index === chosen ? 0 : -1}
            onClick={() => setChosen(index)}
            className={classNames(
              'min-h-10 thumb:min-h-11 grow rounded-sm text-sm font-medium sm:grow-0 sm:px-3',
              isRow ? 'px-1' : 'px-3',
              index === chosen ? 'bg-accent-wash text-accent' : 'text-soft hover:bg-sunken hover:text-ink',
            )}
          >
            {title}
          </button>
        ))}
      </div>
      <div
        role="tabpanel"
        id={`${id}-panel`}
        aria-labelledby={`${id}-tab-${chosen}`}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a panel without controls is reached by Tab itself.
        tabIndex={0}
        className="mt-4"
      >
        {tabs[chosen]?.content}
      </div>
    </div>
  );
}
