import { lazy, Suspense, useState } from 'react';
import { Icon } from '@/components/icon';
import { credits as formatCredits, formatDuration } from '@/lib/format';
import type { DisplayedResult } from './displayed-result';

const loadDetails = () => import('./result-details');
const ResultDetails = lazy(loadDetails);

/** The main facts in one line, and all of them on demand. */
export function ResultFacts({ result, hasNote }: { result: DisplayedResult; hasNote: boolean }) {
  const [isOpen, setOpen] = useState(false);
  const facts = [
    `${result.width} × ${result.height} px`,
    hasNote ? null : result.model,
    result.device,
    result.durationMs === undefined ? null : formatDuration(result.durationMs),
    result.credits === 0 ? 'free' : formatCredits(result.credits),
  ]
    .filter(Boolean)
    .join(' · ');

  if (!result.jobId) return <p className="text-sm text-soft tabular-nums">{facts}</p>;
  return (
    <details
      className="group/facts min-w-0 flex-1 basis-64 text-sm open:order-last open:basis-full"
      onToggle={({ currentTarget }) => setOpen(currentTarget.open)}
    >
      <summary
        onPointerEnter={loadDetails}
        className="inline-flex min-h-10 thumb:min-h-11 cursor-pointer items-center gap-1 rounded-sm text-soft tabular-nums hover:text-ink"
      >
        {facts}
        <Icon name="chevron" className="size-4 transition-transform group-open/facts:rotate-180" />
      </summary>
      {isOpen && (
        <Suspense>
          <ResultDetails result={result} />
        </Suspense>
      )}
    </details>
  );
}
