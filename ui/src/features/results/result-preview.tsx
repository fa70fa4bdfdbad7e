import { lazy, type ReactNode, Suspense, useRef } from 'react';
import { Comparison } from '@/components/comparison';
import { PictureBox } from '@/components/picture-box';
import { classNames } from '@/lib/class-names';
import type { DisplayedResult } from './displayed-result';
import { FactorBadge } from './factor-badge';
import { NewBadge } from './new-badge';
import { ResultFacts } from './result-facts';

const loadZoom = () => import('./zoom-view');
const ZoomView = lazy(loadZoom);

export type View = 'result' | 'compare' | 'zoom';

const views: { view: View; label: string; load?: () => Promise<unknown> }[] = [
  { view: 'result', label: 'Result' },
  { view: 'compare', label: 'Compare' },
  { view: 'zoom', label: 'Zoom', load: loadZoom },
];

type ResultPreviewProps = {
  result: DisplayedResult;
  alt: string;
  originalUrl: string;
  view: View;
  onView: (view: View) => void;
  /** CSS `background` behind a transparent picture. */
  background?: string;
  /** The progress of the current run. */
  progress?: ReactNode;
  /** What only this tool shows about a result. */
  note?: ReactNode;
};

export function ResultPreview(props: ResultPreviewProps) {
  const { result, alt, originalUrl, view, onView, background, progress, note } = props;
  const { url, width, height } = result;
  const zoom = useRef<HTMLButtonElement>(null);
  const picture = (
    // biome-ignore lint/a11y/noStaticElementInteractions: the Zoom button does the same.
    // biome-ignore lint/a11y/useKeyWithClickEvents: as above.
    <div
      className="checkerboard absolute inset-0 cursor-zoom-in"
      style={{ background }}
      onClick={() => onView('zoom')}
    >
      <img src={url} alt={alt} width={width} height={height} className="size-full object-contain" />
    </div>
  );

  function leaveZoom() {
    onView('result');
    // The focused element disappears with the zoomed picture.
    zoom.current?.focus();
  }

  return (
    <figure>
      <PictureBox
        width={width}
        height={height}
        overlay={
          <>
            {view === 'zoom' && (
              <Suspense>
                <ZoomView
                  key={url}
                  url={url}
                  alt={alt}
                  width={width}
                  height={height}
                  background={background}
                  onLeave={leaveZoom}
                />
              </Suspense>
            )}
            <div className="pointer-events-none absolute top-3 left-3 flex gap-2">
              {result.isNew && <NewBadge />}
              {result.factor && <FactorBadge factor={result.factor} />}
            </div>
            {progress}
          </>
        }
      >
        {view === 'result' && picture}
        {view === 'compare' && (
          <Comparison
            label="Compare the original with the result"
            className="absolute inset-0 isolate -outline-offset-2!"
            before={<img src={originalUrl} alt="Before" className="size-full object-contain" />}
            after={<img src={url} alt="After" className="size-full object-contain" />}
            background={background}
          />
        )}
      </PictureBox>
      {note}
      <div className="mt-3 flex flex-wrap items-start justify-between gap-x-4 gap-y-2">
        <figcaption className="contents">
          <ResultFacts result={result} hasNote={note !== undefined} />
        </figcaption>
        <fieldset
          aria-label="View"
          className="flex rounded-md border border-line bg-surface p-0.5 max-sm:order-first max-sm:w-full"
        >
          {views.map((option) => (
            <button
              key={option.view}
              ref={option.view === 'zoom' ? zoom : null}
              type="button"
              aria-pressed={view === option.view}
              onPointerEnter={option.load}
              onClick={() => onView(option.view)}
              className={classNames(
                'min-h-9 thumb:min-h-11 rounded-sm px-3 text-sm font-medium max-sm:flex-1',
                view === option.view ? 'bg-accent-wash text-accent' : 'text-soft hover:text-ink',
              )}
            >
              {option.label}
            </button>
          ))}
        </fieldset>
      </div>
    </figure>
  );
}
