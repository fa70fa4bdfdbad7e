import { lazy, type ReactNode, Suspense, useRef } from 'react';
import type { Image } from '@/lib/api-types';
import { useSelected } from './results/use-selected';
import { bringIntoSight, ResultsSide } from './results-side';
import { RunPanel } from './run-panel';
import { useRunTool } from './run-tool';
import type { EditingTool } from './tool';

const RunningList = lazy(() => import('./under-way/running-list'));

type StoredImageToolProps = { tool: EditingTool; image: Image; original: ReactNode };

/** Original and actions on the left, results on the right. */
export function StoredImageTool({ tool, image, original }: StoredImageToolProps) {
  const [selectedId, setSelectedId] = useSelected();
  const results = useRef<HTMLElement>(null);
  const run = useRunTool(tool, image.id, (made) => setSelectedId(made.at(-1)?.imageId ?? null));

  return (
    <div className="grid gap-8 md:grid-cols-[2fr_3fr]">
      <section aria-labelledby="original" className="grid content-start gap-4">
        <h2 id="original" className="text-lg font-semibold">
          Original
        </h2>
        {original}
        <RunPanel tool={tool} image={image} run={run} onStart={() => bringIntoSight(results.current)} />
        {run.others.length > 0 && (
          <Suspense>
            <RunningList jobs={run.others} />
          </Suspense>
        )}
      </section>
      <ResultsSide
        ref={results}
        tool={tool}
        image={image}
        run={run}
        selectedId={selectedId}
        onSelect={setSelectedId}
      />
    </div>
  );
}
