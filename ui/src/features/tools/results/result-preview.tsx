import { lazy, type ReactNode, Suspense } from 'react';
import { PictureBox } from '@/components/picture-box';
import type { ResultItem } from '@/lib/api-types';
import { classNames } from '@/lib/class-names';
import { credits as formatCredits, formatDuration } from '@/lib/format';
import { FactorBadge } from './factor-badge';
import { NewBadge } from './new-badge';
import type { View } from './result-gallery';

const loadComparison = () => import('@/components/comparison');
const Comparison = lazy(loadComparison);

const views: { view: View; label: string }[] = [
  { view: 'result', label: 'Result' },
  { view: 'compare', label: 'Compare' },
];

type ResultPreviewProps = {
  result: Pick<ResultItem, 'url' | 'width' | 'height' | 'isNew' | 'credits' | 'factor'> & {
    model: string | null;
    device: string | null;
    durationMs: number | null;
  };
  alt: string;
  originalUrl: string;
  view: View;
  onView: (view: View) => void;
  /** What is going on with the next result. */
  progress?: ReactNode;
  /** What only this tool's results have to say. */
  note?: ReactNode;
};

export function ResultPreview(props: ResultPreviewProps) {
  const { result, alt, originalUrl, view, onView, progress, note } = props;
  const picture = (
    <img
      src={result.url}
      alt={alt}
      width={result.width}
      height={result.height}
      className="size-full object-contain"
    />
  );

  return (
    <figure>
      <PictureBox
        width={result.width}
        height={result.height}
        overlay={
          <>
            <div className="absolute top-3 left-3 flex gap-2">
              {result.isNew && <NewBadge />}
              {result.factor && <FactorBadge factor={result.factor} />}
            </div>
            {progress}
          </>
        }
      >
        {view === 'result' ? (
          <div className="checkerboard absolute inset-0">{picture}</div>
        ) : (
          <Suspense fallback={<div className="checkerboard absolute inset-0">{picture}</div>}>
            <Comparison original={originalUrl} result={result.url} />
          </Suspense>
        )}
      </PictureBox>
      {note}
      <div className="mt-3 flex flex-wrap items-center justify-between gap-x-4 gap-y-2">
        <figcaption className="text-sm text-soft tabular-nums">
          {[
            `${result.width} × ${result.height} px`,
            note ? null : result.model,
            result.device,
            result.durationMs === null ? null : formatDuration(result.durationMs),
            result.credits === 0 ? 'free' : formatCredits(result.credits),
          ]
            .filter(Boolean)
            .join(' · ')}
        </figcaption>
        <fieldset aria-label="View" className="flex rounded-md border border-line bg-surface p-1">
          {views.map((option) => (
            <button
              key={option.view}
              type="button"
              aria-pressed={view === option.view}
              onPointerEnter={loadComparison}
              onClick={() => onView(option.view)}
              className={classNames(
                'min-h-8 rounded-sm px-3 text-sm font-medium',
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
