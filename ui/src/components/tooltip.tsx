import { type KeyboardEvent, type ReactNode, useId, useState } from 'react';
import { classNames } from '@/lib/class-names';

type TooltipProps = {
  /** Nothing to say: the child alone. */
  text: string | undefined;
  align?: 'start' | 'center' | 'end';
  /** Gets the id to be described by. */
  children: (describedBy: string | undefined) => ReactNode;
};

const places = { start: 'left-0', center: 'left-1/2 -translate-x-1/2', end: 'right-0' };

/**
 * A hint under a control, for the pointer and the keyboard alike. It stays while the pointer is on it, and
 * Escape takes it away.
 */
export function Tooltip({ text, align = 'center', children }: TooltipProps) {
  const id = useId();
  const [isDismissed, setDismissed] = useState(false);

  function dismiss(event: KeyboardEvent) {
    if (event.key === 'Escape') setDismissed(true);
  }

  if (!text) return children(undefined);
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: it listens to the control inside.
    <span
      className="group/tip relative inline-flex"
      onKeyDown={dismiss}
      onPointerEnter={() => setDismissed(false)}
      onBlur={() => setDismissed(false)}
    >
      {children(id)}
      <span
        role="tooltip"
        id={id}
        className={classNames(
          'invisible absolute top-full z-40 w-max max-w-[min(300px,calc(100vw-6rem))] pt-2',
          places[align],
          !isDismissed && 'group-hover/tip:visible group-has-focus-visible/tip:visible',
        )}
      >
        <span className="block rounded-sm bg-ink px-3 py-2 text-xs font-medium text-canvas shadow-overlay">
          {text}
        </span>
      </span>
    </span>
  );
}
