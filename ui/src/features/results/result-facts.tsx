import { Suspense, useState } from 'react';
import { Icon } from '@/components/icon';
import { lazyWithRetry } from '@/components/lazy-with-retry';
import { credits as formatCredits, formatDuration } from '@/lib/format';
import { prefetch } from '@/lib/load-with-retry';
import { t } from '@/lib/translate';
import type { DisplayedResult } from './displayed-result';

const loadDetails = () => import('./result-details');
const ResultDetails = lazyWithRetry(loadDetails);

/** The main facts in one line, and all of them on demand. */
export function ResultFacts({ result }: { result: DisplayedResult }) {
  const [isOpen, setOpen] = useState(false);
  const facts = [
    `${result.width} × ${result.height} px`,
    result.durationMs === undefined ? null : formatDuration(result.durationMs),
    result.credits === 0 ? t('free') : formatCredits(result.credits),
  ]
    .filter(Boolean)
    .join(' · ');

  if (!result.jobId) return <p className="text-sm text-soft">{facts}</p>;
  return (
    <details
      className="group/facts min-w-0 flex-1 basis-64 text-sm open:basis-full"
      onToggle={({ currentTarget }) => setOpen(currentTarget.open)}
    >
      <summary
        onPointerEnter={prefetch(loadDetails)}
        className="inline-flex min-h-10 thumb:min-h-11 cursor-pointer items-center gap-1 rounded-sm text-soft hover:text-ink"
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
