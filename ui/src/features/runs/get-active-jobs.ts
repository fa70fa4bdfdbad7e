import { useQuery } from '@tanstack/react-query';
import { api, unwrap } from '@/lib/api-client';
import { activeJobsKey } from '@/lib/query-keys';
import { isFinal } from './job-state';

const POLL_MS = 3_000;

/** The user's queued and running jobs on all images; polled while there are any. */
export function useActiveJobs() {
  return useQuery({
    queryKey: activeJobsKey,
    queryFn: async ({ signal }) =>
      unwrap(await api.GET('/api/jobs', { signal })).jobs.filter((job) => !isFinal(job)),
    refetchInterval: ({ state }) => (state.data?.length ? POLL_MS : false),
    // Another tab or an API client may have started a job.
    refetchOnWindowFocus: true,
  });
}
