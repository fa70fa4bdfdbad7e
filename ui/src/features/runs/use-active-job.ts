import { queryOptions, useQuery, useQueryClient } from '@tanstack/react-query';
import { useEffect, useEffectEvent } from 'react';
import type { Tool } from '@/features/catalog/tool';
import { api, unwrap } from '@/lib/api-client';
import type { Job, Result, ResultItem, ToolName } from '@/lib/api-types';
import { activeJobsKey, imageJobsKey, queryKeys } from '@/lib/query-keys';
import { isFinal } from './job-state';
import { loadFollowJob } from './load-follow-job';
import { updateActiveJobs } from './update-active-jobs';

/** Polls the jobs of other tools. The tool's own job is followed by its events. */
const POLL_MS = 3_000;

type FollowActiveJobOptions = {
  imageId: string;
  tool: ToolName;
  /** The query key of the list that the new results belong to. */
  resultsKey: readonly unknown[];
  onDone: (results: Result[]) => void;
  onFailed: (job: Job) => void;
};

/** The active jobs of one image, cached along with the results of one tool. */
function imageJobsQuery(imageId: string, resultsKey: readonly unknown[]) {
  return queryOptions({
    queryKey: imageJobsKey(resultsKey),
    queryFn: async ({ signal }) => {
      const { jobs } = unwrap(await api.GET('/api/jobs', { params: { query: { imageId } }, signal }));
      return jobs.filter((job) => !isFinal(job));
    },
  });
}

/** Reads the job that `useFollowActiveJob` keeps up to date elsewhere on the page; never fetches. */
export function useActiveJob({ name, resultsKey }: Pick<Tool, 'name' | 'resultsKey'>, imageId: string) {
  const { data } = useQuery({ ...imageJobsQuery(imageId, resultsKey(imageId)), enabled: false });
  return data?.find((job) => job.tool === name) ?? null;
}

/**
 * Follows the image's active job of one tool until it ends. The job is looked up by image, so a job started before a
 * reload or in another tab is followed too.
 */
export function useFollowActiveJob(options: FollowActiveJobOptions) {
  const { imageId, tool, resultsKey, onDone, onFailed } = options;
  const queryClient = useQueryClient();
  const key = imageJobsKey(resultsKey);

  const jobs = useQuery({
    ...imageJobsQuery(imageId, resultsKey),
    refetchInterval: ({ state }) => state.data?.some((job) => job.tool !== tool) && POLL_MS,
  });
  const job = jobs.data?.find((job) => job.tool === tool) ?? null;

  /** Records a new state of the job. */
  function update(next: Job) {
    updateActiveJobs(queryClient, next);
    if (!isFinal(next)) {
      queryClient.setQueryData<Job[]>(key, (old = []) => [...old.filter(({ id }) => id !== next.id), next]);
      return;
    }
    queryClient.setQueryData<Job[]>(key, (old = []) => old.filter(({ id }) => id !== next.id));
    refreshBalance();
    if (next.state === 'done') {
      appendResults(next.results);
      onDone(next.results);
    }
    if (next.state === 'failed') onFailed(next);
  }

  /** Records the results of an API that answered without a job. */
  function complete(results: Result[]) {
    refreshBalance();
    appendResults(results);
    onDone(results);
  }

  /** Every end of a run debits or releases its hold, and may use the image's free run. */
  function refreshBalance() {
    void queryClient.invalidateQueries({ queryKey: queryKeys.user });
    void queryClient.invalidateQueries({ queryKey: queryKeys.userImage(imageId) });
  }

  /** Appends new results and marks only them as new. */
  function appendResults(results: Result[]) {
    const isListFetching = queryClient.isFetching({ queryKey: resultsKey, exact: true }) > 0;
    queryClient.setQueryData<ResultItem[]>(resultsKey, (old = []) => {
      const ids = new Set(results.map(({ imageId }) => imageId));
      return [
        ...old.filter(({ imageId }) => !ids.has(imageId)).map((item) => ({ ...item, isNew: false })),
        ...results.map((result) => ({ ...result, isNew: true })),
      ];
    });
    // The response on its way may predate the new results and would remove them again.
    if (isListFetching) void queryClient.invalidateQueries({ queryKey: resultsKey, exact: true });
  }

  const onJob = useEffectEvent(update);
  const onUnreadable = useEffectEvent(() => {
    // The job can no longer be read; the lists show its outcome.
    queryClient.setQueryData<Job[]>(key, []);
    void queryClient.invalidateQueries({ queryKey: resultsKey, exact: true });
    void queryClient.invalidateQueries({ queryKey: activeJobsKey });
  });

  const jobId = job?.id;
  useEffect(() => {
    if (!jobId) return;
    const following = new AbortController();
    loadFollowJob()
      .then(({ followJob }) => followJob(jobId, following.signal, (next) => onJob(next)))
      .catch(() => !following.signal.aborted && onUnreadable());
    return () => following.abort();
  }, [jobId]);

  return {
    job,
    otherJobs: jobs.data?.filter((job) => job.tool !== tool) ?? [],
    isLoading: jobs.isPending,
    update,
    complete,
  };
}
