import { useQuery } from '@tanstack/react-query';
import { api, unwrap } from '@/lib/api-client';
import { isFinal } from '@/lib/job-state';
import { runningKey } from '@/lib/query-keys';

const LOOK_MS = 3_000;

/** Everything of the user's that waits or runs, on any image; asked again while there is something. */
export function useRunning() {
  return useQuery({
    queryKey: runningKey,
    queryFn: async ({ signal }) =>
      unwrap(await api.GET('/api/jobs', { signal })).jobs.filter((job) => !isFinal(job)),
    refetchInterval: ({ state }) => (state.data?.length ? LOOK_MS : false),
    // Something may have been started in another tab, or by a program.
    refetchOnWindowFocus: true,
  });
}
