import { lazy, type ReactNode, Suspense, useRef } from 'react';
import { PictureBox } from '@/components/picture-box';
import { classNames } from '@/lib/class-names';
import { FactorBadge } from './factor-badge';
import { NewBadge } from './new-badge';
import { ResultFacts } from './result-facts';
import type { ShownResult } from './shown-result';

const loadComparison = () => import('@/components/comparison');
const Comparison = lazy(loadComparison);
const loadZoom = () => import('./zoom-view');
const ZoomView = lazy(loadZoom);

export type View = 'result' | 'compare' | 'zoom';

const views: { view: View; label: string; load?: () => Promise<unknown> }[] = [
  { view: 'result', label: 'Result' },
  { view: 'compare', label: 'Compare', load: loadComparison },
  { view: 'zoom', label: 'Zoom', load: loadZoom },
];

type ResultPreviewProps = {
  result: ShownResult;
  alt: string;
  originalUrl: string;
  view: View;
  onView: (view: View) => void;
  /** The style `background` of what lies behind it, where it is transparent. */
  background?: string;
  /** What is going on with the next result. */
  progress?: ReactNode;
  /** What only this tool's results have to say. */
  note?: ReactNode;
};

export function ResultPreview(props: ResultPreviewProps) {
  const { result, alt, originalUrl, view, onView, background, progress, note } = props;
  const { url, width, height } = result;
  const zoom = useRef<HTMLButtonElement>(null);
  const picture = (
    // biome-ignore lint/a11y/noStaticElementInteractions: a shortcut; the Zoom button does the same.
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
    // What had the focus goes with the zoomed picture.
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
          <Suspense fallback={picture}>
            <Comparison original={originalUrl} result={url} background={background} />
          </Suspense>
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
