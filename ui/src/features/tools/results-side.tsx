import { lazy, type ReactNode, type Ref, Suspense, useEffectEvent, useLayoutEffect, useRef } from 'react';
import type { Image, Job, ResultItem } from '@/lib/api-types';
import { useCancelJob } from './cancel-job';
import { ResultsPanel } from './results/results-panel';
import type { Tool } from './tool';

const JobProgress = lazy(() => import('./job-progress'));

type ResultsSideProps = {
  ref: Ref<HTMLElement>;
  tool: Tool;
  image: Image;
  run: { job: Job | null; news: string; onCancelled: (job: Job) => void };
  selectedId: string | null;
  onSelect: (resultId: string | null) => void;
  /** What is to be said of a result besides what is said of all. */
  describe?: (result: ResultItem) => ReactNode;
};

/** The results of a tool, and the one that is being made. */
export function ResultsSide({ ref, tool, image, run, selectedId, onSelect, describe }: ResultsSideProps) {
  const cancel = useCancelJob(run.onCancelled);
  const heading = useRef<HTMLHeadingElement>(null);
  const { job } = run;
  return (
    <section ref={ref} aria-labelledby="results" className="min-w-0">
      <h2 id="results" ref={heading} tabIndex={-1} className="mb-4 text-lg font-semibold outline-none">
        Results
      </h2>
      {/* Always there: what is announced must be said in what was there before. A failure is an alert already. */}
      <p aria-live="polite" className="sr-only">
        {run.news}
      </p>
      <ResultsPanel
        tool={tool}
        image={image}
        selectedId={selectedId}
        onSelect={onSelect}
        // The button that was clicked went with what it deleted; the keyboard goes on from here.
        onDeleted={() => heading.current?.focus()}
        describe={describe}
        progress={
          job && (
            <PassFocus to={() => heading.current?.focus()}>
              <Suspense>
                <JobProgress
                  job={job}
                  texts={tool.texts}
                  isCancelling={cancel.isPending}
                  onCancel={() => cancel.mutate(job.id)}
                />
              </Suspense>
            </PassFocus>
          )
        }
      />
    </section>
  );
}

/** Its end takes the Cancel button along; if the keyboard was there, it goes on elsewhere. */
function PassFocus({ to, children }: { to: () => void; children: ReactNode }) {
  const box = useRef<HTMLDivElement>(null);
  const pass = useEffectEvent(to);
  // A layout effect ends while the button is still in the page.
  useLayoutEffect(
    () => () => {
      if (box.current?.contains(document.activeElement)) pass();
    },
    [],
  );
  return (
    <div ref={box} className="absolute inset-x-3 bottom-3">
      {children}
    </div>
  );
}

/** On a narrow screen the results are below the fold; beside the original they are in sight already. */
export function bringIntoSight(element: HTMLElement | null, narrow = '(width < 48rem)') {
  if (!window.matchMedia?.(narrow).matches) return;
  const isCalm = window.matchMedia('(prefers-reduced-motion: reduce)').matches;
  element?.scrollIntoView({ behavior: isCalm ? 'instant' : 'smooth' });
}
