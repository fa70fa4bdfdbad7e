import { type ReactNode, useRef } from 'react';
import type { EditingTool } from '@/features/catalog/tool';
import { MadeFromLink } from '@/features/results/made-from-link';
import { ResultsSide, scrollToResults, selectAdded } from '@/features/results/results-side';
import { useSelectedResult } from '@/features/results/use-selected-result';
import { OtherJobs } from '@/features/runs/other-jobs';
import type { Image } from '@/lib/api-types';
import { t } from '@/lib/translate';
import { RunPanel } from './run-panel';
import { useToolRun } from './use-tool-run';

type StoredImageToolProps = {
  tool: EditingTool;
  image: Image;
  /** Whether the server no longer has its file. */
  isMissing: boolean;
  original: ReactNode;
};

/** The original and the actions on the left, the results on the right. */
export function StoredImageTool({ tool, image, isMissing, original }: StoredImageToolProps) {
  const [selectedId, setSelectedId] = useSelectedResult();
  const results = useRef<HTMLElement>(null);
  const run = useToolRun(tool, image.id, (added) => selectAdded(results.current, added, setSelectedId));

  return (
    <div className="fit-pictures grid gap-8 md:grid-cols-[2fr_3fr]">
      <section aria-labelledby="original" className="grid content-start gap-4">
        <h2 id="original" className="text-lg font-semibold">
          {t('Original')}
        </h2>
        {original}
        <MadeFromLink image={image} />
        <RunPanel
          tool={tool}
          image={image}
          isMissing={isMissing}
          run={run}
          onStart={() => scrollToResults(results.current)}
        />
        <OtherJobs jobs={run.otherJobs} />
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
