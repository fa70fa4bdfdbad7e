import { useEffect, useEffectEvent, useRef } from 'react';
import { Button } from '@/components/button';
import { Comparison } from '@/components/comparison';
import { Notice } from '@/components/notice';
import { Spinner } from '@/components/spinner';
import { failureText } from '@/lib/failure-text';
import type { ImageSize } from '@/lib/image-size';
import { t } from '@/lib/translate';
import type { Part } from './detailed-parts';
import { useSample } from './use-sample';

const FACTOR = 2;

type SamplePanelProps = {
  original: string;
  size: ImageSize;
  /** The picture that a free run made of the original; null if there is none. */
  free: string | null;
};

/** Shows a detail upscaled by the model for paid upscales, beside the free result or the enlarged original. */
export default function SamplePanel({ original, size, free }: SamplePanelProps) {
  const { sample, make, isBusy, error } = useSample(original, FACTOR);
  const heading = useRef<HTMLHeadingElement>(null);
  const start = useEffectEvent(() => {
    // The button that opened the panel is gone.
    heading.current?.focus();
    make();
  });
  useEffect(() => start(), []);
  const before = free ? t('Free Upscale') : t('Your image, enlarged');
  return (
    <section aria-labelledby="sample" className="grid gap-3 rounded-lg border border-line p-4">
      <h3 id="sample" ref={heading} tabIndex={-1} className="font-semibold outline-none">
        {t('Compare before you pay')}
      </h3>
      <p className="text-sm text-soft">
        {t(
          'Upscale 2X and 4X use another model. See what it makes of a detail of your image, free of charge.',
        )}
      </p>
      {sample && (
        <figure className="grid gap-2">
          <Comparison
            label={t('{before} and Upscale 2X of a detail', { before })}
            className="relative w-full rounded-md"
            style={{ aspectRatio: `${sample.part.width} / ${sample.part.height}` }}
            before={<Cropped url={free ?? original} size={size} part={sample.part} />}
            after={<img src={sample.url} alt="" className="size-full" />}
          />
          <figcaption className="flex items-start gap-3 text-sm text-soft">
            <Place url={original} size={size} part={sample.part} />
            <span>
              {free
                ? t(
                    'Left: free Upscale. Right: Upscale 2X. The detail is {width} × {height} pixels of your image.',
                    { width: sample.part.width, height: sample.part.height },
                  )
                : t(
                    'Left: your image, enlarged. Right: Upscale 2X. The detail is {width} × {height} pixels of your image.',
                    { width: sample.part.width, height: sample.part.height },
                  )}
            </span>
          </figcaption>
        </figure>
      )}
      {error && <Notice tone="warning">{failureText(error)}</Notice>}
      <div>
        {sample || error ? (
          <Button variant="secondary" isBusy={isBusy} onClick={() => make()}>
            {error ? t('Try again') : t('Show another detail')}
          </Button>
        ) : (
          <Spinner label={t('Upscaling a detail…')} />
        )}
      </div>
      <p aria-live="polite" className="sr-only">
        {sample && !isBusy && t('The comparison is ready.')}
      </p>
    </section>
  );
}

type CroppedProps = { url: string; size: ImageSize; part: Part };

/** A part of a picture, which may be several times as large as `size`. */
function Cropped({ url, size, part }: CroppedProps) {
  return (
    <svg
      viewBox={`${part.x} ${part.y} ${part.width} ${part.height}`}
      aria-hidden="true"
      className="size-full"
    >
      <image href={url} width={size.x} height={size.y} preserveAspectRatio="none" />
    </svg>
  );
}

/** The whole picture, with a frame around the part. */
function Place({ url, size, part }: CroppedProps) {
  return (
    <svg viewBox={`0 0 ${size.x} ${size.y}`} aria-hidden="true" className="max-h-20 w-20 shrink-0 rounded-sm">
      <image href={url} width={size.x} height={size.y} />
      {[
        { color: '#fff', width: 4 },
        { color: '#161819', width: 2 },
      ].map(({ color, width }) => (
        <rect
          key={color}
          {...part}
          fill="none"
          stroke={color}
          strokeWidth={width}
          vectorEffect="non-scaling-stroke"
        />
      ))}
    </svg>
  );
}
