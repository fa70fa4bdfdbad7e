import { type CSSProperties, useState } from 'react';
import { pictureOf } from './comparison-picture';
import { Icon } from './icon';

/** Two pictures of one shape, made by `examples/make.py`. */
export type ExamplePair = {
  id: string;
  width: number;
  height: number;
  /** What is to be seen, before and after. */
  alt: string;
  result: string;
};

const label = 'absolute bottom-3 rounded-sm bg-surface px-2 py-1 text-xs font-medium text-ink';

type ComparisonSliderProps = { pair: ExamplePair; isFirst?: boolean };

/**
 * Before on the left of the line, after on its right. A range input lies over both, so that pointer, touch and arrow
 * keys need no code: a tenth of what the tool pages' comparison weighs, which has to cope with any picture.
 */
export function ComparisonSlider({ pair, isFirst = false }: ComparisonSliderProps) {
  const [share, setShare] = useState(50);
  const [come, setCome] = useState(0);
  const { id, width, height, alt, result } = pair;
  // Only the first picture of a page is worth waiting for.
  const picture = {
    width,
    height,
    className: 'size-full',
    decoding: 'async' as const,
    onLoad: () => setCome((count) => count + 1),
    // One that does not come says in words what it would have shown.
    onError: () => setCome((count) => count + 1),
    ...(isFirst ? { fetchPriority: 'high' as const } : { loading: 'lazy' as const }),
  };

  return (
    <div
      className="@container relative overflow-hidden rounded-lg border border-line bg-sunken has-focus-visible:outline-2 has-focus-visible:outline-offset-2 has-focus-visible:outline-accent"
      style={{ aspectRatio: `${width} / ${height}`, '--share': `${share}%` } as CSSProperties}
    >
      <div className="checkerboard absolute inset-0">
        <img src={pictureOf(id, 'after')} alt={`After: ${result}`} {...picture} />
        <span className={`${label} right-3`}>After</span>
      </div>
      <div className="absolute inset-0 bg-sunken [clip-path:inset(0_calc(100%-var(--share))_0_0)]">
        <img src={pictureOf(id, 'before')} alt={`Before: ${alt}`} {...picture} />
        <span className={`${label} left-3`}>Before</span>
      </div>
      <div
        aria-hidden="true"
        className="pointer-events-none absolute inset-y-0 left-(--share) w-0.5 -translate-x-1/2 bg-[#fff]"
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
      {/* Half a pair compares nothing: until both have come, the place is kept and calm. */}
      {come < 2 && (
        <div
          data-waiting
          aria-hidden="true"
          className="pointer-events-none absolute inset-0 grid place-items-center bg-sunken text-soft"
        >
          <Icon name="image" className="size-8" />
        </div>
      )}
      <input
        type="range"
        min={0}
        max={100}
        value={share}
        aria-label={`Compare before and after: ${alt}`}
        aria-valuetext={`${share} percent before`}
        onChange={(event) => setShare(event.target.valueAsNumber)}
        className="absolute inset-0 m-0 size-full cursor-ew-resize touch-pan-y appearance-none opacity-0 [&::-moz-range-thumb]:w-px [&::-webkit-slider-thumb]:w-px [&::-webkit-slider-thumb]:appearance-none"
      />
    </div>
  );
}
