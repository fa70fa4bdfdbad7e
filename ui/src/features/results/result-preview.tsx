import { type ReactNode, type RefObject, Suspense, useRef } from 'react';
import { lazyWithRetry } from '@/components/lazy-with-retry';
import { Picture } from '@/components/picture';
import { PictureBox } from '@/components/picture-box';
import { classNames } from '@/lib/class-names';
import { prefetch } from '@/lib/load-with-retry';
import { type Message, msg, t } from '@/lib/translate';
import type { DisplayedResult } from './displayed-result';
import { FactorBadge } from './factor-badge';
import type { Finished } from './finished-picture';
import { NewBadge } from './new-badge';
import type { EnlargedPicture } from './rendered-picture';
import { ResultFacts } from './result-facts';

const loadZoom = () => import('./zoom-view');
const ZoomView = lazyWithRetry(loadZoom);
const loadCompare = () => import('./compare-view');
const CompareView = lazyWithRetry(loadCompare);

export type View = 'result' | 'compare' | 'zoom';

const views: { view: View; label: Message; load?: () => Promise<unknown> }[] = [
  { view: 'result', label: msg('Result') },
  { view: 'compare', label: msg('Compare'), load: loadCompare },
  { view: 'zoom', label: msg('Zoom'), load: loadZoom },
];

type ResultPreviewProps = {
  result: DisplayedResult;
  alt: string;
  /** Null if the page no longer has the original. */
  original: { url: string; previewUrl?: string | null } | null;
  view: View;
  onView: (view: View) => void;
  /** CSS `background` behind a transparent picture. */
  background?: string;
  /** Shown instead of the picture, where more than its background is changed. */
  finished?: Finished;
  /** Edits the picture in its place. */
  editor?: ReactNode;
  /** The progress of the current run. */
  progress?: ReactNode;
  /** What only this tool shows about a result. */
  note?: ReactNode;
};

export function ResultPreview(props: ResultPreviewProps) {
  const { result, alt, original, onView, background, finished, editor, progress, note } = props;
  const { url, width, height } = result;
  const fitted = result.previewUrl ?? url;
  const zoom = useRef<HTMLButtonElement>(null);
  const compare = useRef<HTMLButtonElement>(null);
  const canCompare = original !== null && !finished?.isCropped;
  const view = props.view === 'compare' && !canCompare ? 'result' : props.view;
  const picture = (
    // biome-ignore lint/a11y/noStaticElementInteractions: the Zoom button does the same.
    // biome-ignore lint/a11y/useKeyWithClickEvents: as above.
    <div
      className="checkerboard absolute inset-0 cursor-zoom-in"
      style={{ background }}
      onClick={() => onView('zoom')}
    >
      <Picture src={fitted} alt={alt} width={width} height={height} className="size-full object-contain" />
    </div>
  );

  function leave(button: RefObject<HTMLButtonElement | null>) {
    onView('result');
    // The focused element disappears with the enlarged picture.
    button.current?.focus();
  }

  const enlarged = (shown: EnlargedPicture, key = '', behind?: string) => (
    <Suspense>
      {view === 'zoom' ? (
        <ZoomView key={key} {...shown} alt={alt} background={behind} onLeave={() => leave(zoom)} />
      ) : (
        original && (
          <CompareView
            key={key}
            original={original}
            result={shown}
            width={shown.width}
            height={shown.height}
            background={behind}
            onLeave={() => leave(compare)}
          />
        )
      )}
    </Suspense>
  );

  return (
    <figure className={view === 'result' ? 'finishing-figure' : 'max-sm:[--picture-height:55dvh]'}>
      <PictureBox
        width={width}
        height={height}
        overlay={
          <>
            {editor}
            {view !== 'result' &&
              !editor &&
              // A renewed URL shows the same picture.
              (finished?.enlarge((file) => enlarged(file, `${file.width}x${file.height}`)) ??
                enlarged(result, url.split('?')[0], background))}
            <div className="pointer-events-none absolute top-3 left-3 flex gap-2">
              {result.isNew && <NewBadge />}
              {result.factor && <FactorBadge factor={result.factor} />}
            </div>
            {progress}
          </>
        }
      >
        {!editor && (finished?.picture ?? (view === 'result' && picture))}
      </PictureBox>
      {note}
      <div className="mt-3 flex flex-wrap items-start justify-between gap-x-4 gap-y-2">
        <figcaption className="contents">
          <ResultFacts result={result} />
        </figcaption>
        <fieldset
          aria-label={t('View')}
          className="flex rounded-md border border-line bg-surface p-0.5 max-sm:order-first max-sm:w-full"
        >
          {views
            .filter(({ view }) => view !== 'compare' || canCompare)
            .map((option) => (
              <button
                key={option.view}
                ref={option.view === 'zoom' ? zoom : option.view === 'compare' ? compare : null}
                type="button"
                aria-pressed={view === option.view && !editor}
                onPointerEnter={option.load && prefetch(option.load)}
                onClick={() => onView(option.view)}
                className={classNames(
                  'min-h-9 thumb:min-h-11 rounded-sm px-3 text-sm font-medium max-sm:flex-1',
                  view === option.view && !editor ? 'bg-accent-wash text-accent' : 'text-soft hover:text-ink',
                )}
              >
                {t(option.label)}
              </button>
            ))}
        </fieldset>
      </div>
    </figure>
  );
}
