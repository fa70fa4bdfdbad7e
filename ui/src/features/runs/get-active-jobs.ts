import { queryOptions, useQuery } from '@tanstack/react-query';
import { api, unwrap } from '@/lib/api-client';
import { activeJobsKey } from '@/lib/query-keys';
import { isFinal } from './job-state';

/** The user's queued and running jobs on all images. `RunFollower` keeps them up to date. */
export const activeJobsQuery = queryOptions({
  queryKey: activeJobsKey,
  queryFn: async ({ signal }) =>
    unwrap(await api.GET('/api/jobs', { signal })).jobs.filter((job) => !isFinal(job)),
  // Several parts of a page show them.
  staleTime: 10_000,
  refetchOnWindowFocus: true,
});

export function useActiveJobs() {
  return useQuery(activeJobsQuery);
}
