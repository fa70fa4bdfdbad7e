import { type ReactNode, type Ref, Suspense, useRef } from 'react';
import { lazyWithRetry } from '@/components/lazy-with-retry';
import type { Tool } from '@/features/catalog/tool';
import { useCancelJob } from '@/features/runs/cancel-job';
import type { Image, Job, Result } from '@/lib/api-types';
import { passFocus } from '@/lib/pass-focus';
import { t } from '@/lib/translate';
import { ResultsPanel } from './results-panel';

const JobProgress = lazyWithRetry(() => import('@/features/runs/job-progress'));

type ResultsSideProps = {
  ref: Ref<HTMLElement>;
  tool: Tool;
  image: Image;
  run: { job: Job | null; announcement: string; onCancelResponse: (job: Job) => void };
  selectedId: string | null;
  onSelect: (resultId: string | null) => void;
  /** Adds what only this tool shows about a result. */
  describe?: (result: Result) => ReactNode;
  /** Edits a result on this page. */
  onContinue?: (result: Result) => void;
  /** The result that this page is already editing. */
  editedId?: string | null;
};

/** The results of a tool and the progress of the current run. */
export function ResultsSide({ ref, run, ...shown }: ResultsSideProps) {
  const cancel = useCancelJob(run.onCancelResponse);
  const heading = useRef<HTMLHeadingElement>(null);
  const { job } = run;
  return (
    <section ref={ref} aria-labelledby="results" className="min-w-0">
      <h2 id="results" ref={heading} tabIndex={-1} className="mb-4 text-lg font-semibold outline-none">
        {t('Results')}
      </h2>
      {/* Always rendered: a live region must exist before its text changes. Failures are alerts elsewhere. */}
      <p aria-live="polite" className="sr-only">
        {run.announcement}
      </p>
      <ResultsPanel
        // Magic Fix shows the next image in place, and its results are another list.
        key={shown.image.id}
        {...shown}
        // The Delete button disappears with its result; the focus moves here.
        onDeleted={() => heading.current?.focus()}
        progress={
          job && (
            <div key="progress" ref={passFocus} className="absolute inset-x-3 bottom-3">
              <Suspense>
                <JobProgress
                  job={job}
                  texts={shown.tool.texts}
                  isCanceling={cancel.isPending}
                  onCancel={() => cancel.mutate(job.id)}
                />
              </Suspense>
            </div>
          )
        }
      />
    </section>
  );
}

/** Scrolls to the results unless they are in sight, or the user draws: the picture must not move under the pointer. */
export function scrollToResults(section: HTMLElement | null) {
  const { top = 0 } = section?.getBoundingClientRect() ?? {};
  const isInSight = top >= 0 && top < window.innerHeight / 2;
  if (isInSight || document.activeElement?.matches('[role=application]')) return;
  const isReduced = window.matchMedia('(prefers-reduced-motion: reduce)').matches;
  section?.scrollIntoView({ behavior: isReduced ? 'instant' : 'smooth' });
}

/** Selects the newest of the added results, unless people enlarge, compare, or touch up another one in `section`. */
export function selectAdded(
  section: HTMLElement | null,
  added: Result[],
  select: (resultId: string | null) => void,
) {
  if (!section?.querySelector('[role=application]')) select(added.at(-1)?.imageId ?? null);
}
