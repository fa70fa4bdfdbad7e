import { type ReactNode, useRef } from 'react';
import { t } from '@/lib/translate';

/** A press shorter than this toggles; a longer one holds only while it lasts. */
const SHORT_MS = 300;

type HoldButtonProps = {
  name: string;
  isOn: boolean;
  onHold: (isHeld: boolean) => void;
  className: string;
  children: ReactNode;
};

/** Is on while it is held. A short press switches it on or off, as does a click without a press, by assistive technology. */
export function HoldButton({ name, isOn, onHold, className, children }: HoldButtonProps) {
  const pressedAt = useRef<number | null>(null);
  const wasOn = useRef(false);
  /** Whether the next click ends a press, which has been handled. */
  const endsPress = useRef(false);

  function press() {
    wasOn.current = isOn;
    pressedAt.current = Date.now();
    endsPress.current = true;
    onHold(true);
  }

  function release() {
    if (pressedAt.current === null) return;
    const isShort = Date.now() - pressedAt.current < SHORT_MS;
    pressedAt.current = null;
    onHold(isShort && !wasOn.current);
  }

  function click() {
    // A held Enter key clicks again and again.
    const isHeld = pressedAt.current !== null;
    if (!endsPress.current && !isHeld) onHold(!isOn);
    endsPress.current = false;
  }

  return (
    <button
      type="button"
      title={t('{name}, or click to switch', { name })}
      aria-pressed={isOn}
      className={className}
      onPointerDown={press}
      onPointerUp={release}
      onPointerLeave={release}
      onPointerCancel={release}
      onContextMenu={(event) => event.preventDefault()}
      onKeyDown={({ key, repeat }) => (key === ' ' || key === 'Enter') && !repeat && press()}
      onKeyUp={({ key }) => (key === ' ' || key === 'Enter') && release()}
      onClick={click}
      onBlur={release}
    >
      {children}
    </button>
  );
}
