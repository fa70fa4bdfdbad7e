import { type KeyboardEvent, useEffect, useRef } from 'react';
import type { ResultItem } from '@/lib/api-types';
import { classNames } from '@/lib/class-names';
import { t } from '@/lib/translate';
import { FactorBadge } from './factor-badge';
import { NewBadge } from './new-badge';
import { ResultThumbnail } from './result-thumbnail';

type ResultStripProps = { results: ResultItem[]; selectedId: string; onSelect: (resultId: string) => void };

const steps: Record<string, (index: number, last: number) => number> = {
  ArrowLeft: (index) => Math.max(0, index - 1),
  ArrowRight: (index, last) => Math.min(last, index + 1),
  Home: () => 0,
  End: (_, last) => last,
};

/** All results, the newest last; a single one is not worth the room. Tab focuses the selected one; arrow keys move between them. */
export function ResultStrip({ results, selectedId, onSelect }: ResultStripProps) {
  const strip = useRef<HTMLUListElement>(null);
  const newest = results.at(-1)?.imageId;

  // Scrolls a new result into view.
  useEffect(() => {
    if (newest && strip.current) strip.current.scrollLeft = strip.current.scrollWidth;
  }, [newest]);

  function handleKey(event: KeyboardEvent) {
    const at = results.findIndex(({ imageId }) => imageId === selectedId);
    const next = steps[event.key]?.(at, results.length - 1);
    const result = next === undefined ? undefined : results[next];
    if (!result || next === undefined) return;
    event.preventDefault();
    onSelect(result.imageId);
    strip.current?.querySelectorAll('button')[next]?.focus();
  }

  return (
    <ul
      ref={strip}
      data-strip
      aria-label={t('All results')}
      onKeyDown={handleKey}
      className="-mx-1 flex has-[>:only-child]:hidden gap-2 overflow-x-auto p-1 pb-2 sm:gap-3"
    >
      {results.map((result, index) => (
        <li key={result.imageId} className="relative shrink-0">
          <button
            type="button"
            aria-pressed={result.imageId === selectedId}
            tabIndex={result.imageId === selectedId ? 0 : -1}
            onClick={() => onSelect(result.imageId)}
            className={classNames(
              'grid size-18 place-items-center overflow-hidden rounded-md bg-sunken sm:size-20 low:sm:size-14',
              result.imageId === selectedId
                ? 'ring-2 ring-accent'
                : 'ring-1 ring-line hover:ring-2 hover:ring-control',
            )}
          >
            <ResultThumbnail result={result} alt={t('Result {index}', { index: index + 1 })} />
          </button>
          {result.factor && (
            <span className="pointer-events-none absolute -top-1 -right-1">
              <FactorBadge factor={result.factor} />
            </span>
          )}
          {result.isNew && (
            <span className="pointer-events-none absolute bottom-1 left-1">
              <NewBadge />
            </span>
          )}
        </li>
      ))}
    </ul>
  );
}
