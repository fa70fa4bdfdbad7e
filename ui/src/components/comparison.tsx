import {
  type CSSProperties,
  type MouseEvent,
  type PointerEvent,
  type ReactNode,
  useRef,
  useState,
} from 'react';
import { classNames } from '@/lib/class-names';
import { t } from '@/lib/translate';
import { capturePointer, pointIn } from './pan-zoom/pointer';

type ComparisonProps = {
  label: string;
  before: ReactNode;
  /** Without it, what lies below is compared. */
  after?: ReactNode;
  className?: string;
  style?: CSSProperties;
  /** The share of `before` that is visible, in percent. */
  share?: number;
  onShare?: (share: number) => void;
  /** Drawn above both pictures, below the slider. */
  children?: ReactNode;
};

/** Shows `before` to the left of the line and `after` to its right. An invisible range input serves the keyboard. */
export function Comparison({
  label,
  before,
  after,
  className,
  style,
  share: givenShare,
  onShare,
  children,
}: ComparisonProps) {
  const [ownShare, setOwnShare] = useState(50);
  const share = givenShare ?? ownShare;
  const setShare = onShare ?? setOwnShare;
  const input = useRef<HTMLInputElement>(null);
  const shareBefore = useRef(share);
  const moveLine = (event: MouseEvent<HTMLElement>) =>
    setShare(shareAt(pointIn(event.currentTarget, event).x, event.currentTarget.clientWidth));

  // Not left to the range input: in Safari on a phone, only a touch inside its thumb drags.
  const handlers = {
    onPointerDown: (event: PointerEvent<HTMLElement>) => {
      capturePointer(event);
      shareBefore.current = share;
      // A finger may be about to scroll the page.
      if (event.pointerType !== 'touch') moveLine(event);
    },
    onPointerMove: (event: PointerEvent<HTMLElement>) => event.buttons === 1 && moveLine(event),
    // It scrolls the page.
    onPointerCancel: () => setShare(shareBefore.current),
    onClick: (event: MouseEvent<HTMLElement>) => {
      moveLine(event);
      input.current?.focus({ preventScroll: true });
    },
  };

  return (
    <div
      className={classNames(
        '@container overflow-hidden has-focus-visible:outline-2 has-focus-visible:outline-accent',
        className,
      )}
      style={style}
    >
      {after && <div className="checkerboard absolute inset-0">{after}</div>}
      <ComparedPart share={share}>{before}</ComparedPart>
      {children}
      <div {...handlers} className="absolute inset-0 cursor-ew-resize touch-pan-y select-none" />
      <input
        ref={input}
        type="range"
        min={0}
        max={100}
        value={Math.round(share)}
        aria-label={label}
        aria-valuetext={t('{percent} percent before', { percent: Math.round(share) })}
        onChange={({ target }) => setShare(target.valueAsNumber)}
        className="pointer-events-none absolute inset-0 m-0 size-full opacity-0"
      />
    </div>
  );
}

/** Returns the position of the line, in percent, when it is at `x` of `width` pixels. */
export const shareAt = (x: number, width: number) => Math.min(100, Math.max(0, (x / width) * 100));

/** Covers the picture below it with `children`, up to a line at `share` percent. */
export function ComparedPart({ share, children }: { share: number; children: ReactNode }) {
  return (
    <>
      {/* Opaque, so that the result does not shine through beside a narrow original. */}
      <div className="absolute inset-0 bg-sunken" style={{ clipPath: `inset(0 ${100 - share}% 0 0)` }}>
        {children}
      </div>
      <div
        aria-hidden="true"
        className="pointer-events-none absolute inset-y-0 w-0.5 -translate-x-1/2 bg-[#fff] shadow-[0_0_2px_rgb(0_0_0/0.6)]"
        style={{ left: `${share}%` }}
      >
        <svg
          viewBox="0 0 40 40"
          aria-hidden="true"
          className="absolute top-1/2 left-1/2 size-8 -translate-1/2 @md:size-10 drop-shadow-md"
        >
          <circle cx="20" cy="20" r="18" fill="#fff" />
          <path
            d="m16 14-6 6 6 6m8-12 6 6-6 6"
            fill="none"
            stroke="#161819"
            strokeWidth="2"
            strokeLinecap="round"
            strokeLinejoin="round"
          />
        </svg>
      </div>
    </>
  );
}
