import { Suspense } from 'react';
import { lazyWithRetry } from '@/components/lazy-with-retry';
import type { Job } from '@/lib/api-types';

const ActiveJobsList = lazyWithRetry(() => import('./active-jobs-list'), null);

/** The other active jobs of an image. The list's code is loaded only if there are any. */
export function OtherJobs({ jobs }: { jobs: Job[] }) {
  if (jobs.length === 0) return null;
  return (
    <Suspense>
      <ActiveJobsList jobs={jobs} />
    </Suspense>
  );
}
