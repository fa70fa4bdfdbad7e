import { dropRun } from '@/features/mask/mask-store';
import { hasEndedWithoutResult } from '@/features/runs/job-state';
import type { Job } from '@/lib/api-types';

/** Watches runs: after one that produced nothing, its mask can be changed again, whichever page is open by then. */
export const dropEndedRuns = {
  onJob: (job: Job) => hasEndedWithoutResult(job) && dropRun(job.id),
  onDeleted: dropRun,
  isShown: () => false,
};
