import { type KeyboardEvent, type ReactNode, useId, useState } from 'react';
import { classNames } from '@/lib/class-names';

type TooltipProps = {
  /** Undefined renders only the child. */
  text: string | undefined;
  align?: 'start' | 'center' | 'end';
  /** Receives the id for `aria-describedby`. */
  children: (describedBy: string | undefined) => ReactNode;
};

const positions = { start: 'left-0', center: 'left-1/2 -translate-x-1/2', end: 'right-0' };

/** A hint below a control, on hover and keyboard focus. It stays while the pointer is over it; Escape hides it. */
export function Tooltip({ text, align = 'center', children }: TooltipProps) {
  const id = useId();
  const [isDismissed, setDismissed] = useState(false);

  function dismiss(event: KeyboardEvent) {
    if (event.key === 'Escape') setDismissed(true);
  }

  if (!text) return children(undefined);
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: handles events of the control inside.
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
          positions[align],
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
