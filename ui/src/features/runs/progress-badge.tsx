import { Suspense } from 'react';
import { lazyWithRetry } from '@/components/lazy-with-retry';
import { useActiveJobs } from './get-active-jobs';

const ActiveJobsBadge = lazyWithRetry(() => import('./active-jobs-badge'), null);

/** The progress of an image's jobs, on its thumbnail. Its code loads once there are any. */
export function ProgressBadge({ imageId }: { imageId: string }) {
  const { data } = useActiveJobs();
  const jobs = data?.filter((job) => job.imageId === imageId) ?? [];
  if (jobs.length === 0) return null;
  return (
    <Suspense>
      <ActiveJobsBadge jobs={jobs} />
    </Suspense>
  );
}
