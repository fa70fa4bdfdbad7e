import type { QueryClient } from '@tanstack/react-query';
import type { Job } from '@/lib/api-types';
import { activeJobsKey } from '@/lib/query-keys';
import { isFinal } from './job-state';

/**
 * Adds a started job to the cached list of active jobs, or removes a final one. Progress is left to the polling of
 * `useActiveJobs`: writing it here would postpone the next poll, and with it the progress of the other jobs.
 */
export function updateActiveJobs(queryClient: QueryClient, job: Job) {
  const active = queryClient.getQueryData<Job[]>(activeJobsKey) ?? [];
  const isListed = active.some(({ id }) => id === job.id);
  if (isListed !== isFinal(job)) return;
  queryClient.setQueryData<Job[]>(
    activeJobsKey,
    isListed ? active.filter(({ id }) => id !== job.id) : [...active, job],
  );
}
