import { Suspense } from 'react';
import { lazyWithRetry } from '@/components/lazy-with-retry';
import { ProgressBar } from '@/components/progress-bar';
import type { EditingTool } from '@/features/catalog/tool';
import { t } from '@/lib/translate';
import type { useFreeRun } from './use-free-run';

export const loadJobProgress = () => import('@/features/runs/job-progress');
const JobProgress = lazyWithRetry(loadJobProgress);

type FreeProgressProps = { tool: EditingTool; run: ReturnType<typeof useFreeRun> };

/** The progress of a visitor's run, over the picture that the result will replace. */
export function FreeProgress({ tool, run: { job, uploadFraction } }: FreeProgressProps) {
  if (!job && uploadFraction === null) return null;
  return (
    <div className="absolute inset-x-3 bottom-3">
      {job ? (
        <Suspense>
          <JobProgress job={job} texts={tool.texts} />
        </Suspense>
      ) : (
        <div className="rounded-md border border-line bg-surface p-4 shadow-raised">
          <ProgressBar label={t('Upload')} fraction={uploadFraction === 1 ? null : uploadFraction} />
        </div>
      )}
    </div>
  );
}
