import { type ReactNode, useRef, useState } from 'react';
import type { Image } from '@/lib/api-types';
import { useCancelJob } from './cancel-job';
import { JobProgress } from './job-progress';
import { ResultsPanel } from './results/results-panel';
import { RunPanel } from './run-panel';
import { useRunTool } from './run-tool';
import type { EditingTool } from './tool';

type StoredImageToolProps = { tool: EditingTool; image: Image; original: ReactNode };

/** Original and actions on the left, results on the right. */
export function StoredImageTool({ tool, image, original }: StoredImageToolProps) {
  const [selectedId, setSelectedId] = useState<string | null>(null);
  const results = useRef<HTMLElement>(null);
  const run = useRunTool(tool, image.id, (made) => setSelectedId(made.at(-1)?.imageId ?? null));
  const cancel = useCancelJob(run.onCancelled);
  const { job } = run;

  return (
    <div className="grid gap-8 md:grid-cols-[2fr_3fr]">
      <section aria-labelledby="original" className="grid content-start gap-4">
        <h2 id="original" className="text-lg font-semibold">
          Original
        </h2>
        {original}
        <RunPanel tool={tool} image={image} run={run} onStart={() => bringIntoSight(results.current)} />
      </section>
      <section ref={results} aria-labelledby="results" className="min-w-0">
        <h2 id="results" className="mb-4 text-lg font-semibold">
          Results
        </h2>
        <ResultsPanel
          tool={tool}
          image={image}
          selectedId={selectedId}
          onSelect={setSelectedId}
          progress={
            job && (
              <div className="absolute inset-x-3 bottom-3">
                <JobProgress
                  job={job}
                  texts={tool.texts}
                  isCancelling={cancel.isPending}
                  onCancel={() => cancel.mutate(job.id)}
                />
              </div>
            )
          }
        />
      </section>
    </div>
  );
}

/** On a narrow screen the results are below the fold; beside the original they are in sight already. */
function bringIntoSight(element: HTMLElement | null) {
  if (!window.matchMedia?.('(width < 48rem)').matches) return;
  const isCalm = window.matchMedia('(prefers-reduced-motion: reduce)').matches;
  element?.scrollIntoView({ behavior: isCalm ? 'instant' : 'smooth' });
}
