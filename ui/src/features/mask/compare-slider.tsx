import { useState } from 'react';
import { ComparisonHandle } from '@/components/comparison';
import { PlacedImage } from '@/components/pan-zoom/placed-image';
import type { View } from '@/components/pan-zoom/view';
import type { ImageSize } from '@/lib/image-size';

type CompareSliderProps = { beforeUrl: string; size: ImageSize; view: View };

const tag = 'pointer-events-none absolute top-3 rounded-sm bg-surface px-2 py-1 text-xs font-medium text-ink';

/** Covers the left of the editor with the picture from before, up to a line that can be dragged. */
export function CompareSlider({ beforeUrl, size, view }: CompareSliderProps) {
  const [share, setShare] = useState(50);
  return (
    <div className="@container absolute inset-0 overflow-hidden rounded-lg has-focus-visible:outline-2 has-focus-visible:outline-accent">
      <div className="absolute inset-0 bg-sunken" style={{ clipPath: `inset(0 ${100 - share}% 0 0)` }}>
        <PlacedImage src={beforeUrl} size={size} view={view} />
      </div>
      <div
        aria-hidden="true"
        className="pointer-events-none absolute inset-y-0 w-0.5 -translate-x-1/2 bg-[#fff] shadow-[0_0_2px_rgb(0_0_0/0.6)]"
        style={{ left: `${share}%` }}
      >
        <ComparisonHandle />
      </div>
      <span className={`${tag} left-3`}>Before</span>
      <span className={`${tag} right-3`}>After</span>
      <input
        type="range"
        min={0}
        max={100}
        value={share}
        aria-label="Compare before and after"
        aria-valuetext={`${Math.round(share)} percent before`}
        onChange={({ target }) => setShare(target.valueAsNumber)}
        className="absolute inset-0 m-0 size-full cursor-ew-resize touch-pan-y appearance-none opacity-0 [&::-moz-range-thumb]:w-px [&::-webkit-slider-thumb]:w-px [&::-webkit-slider-thumb]:appearance-none"
      />
    </div>
  );
}
