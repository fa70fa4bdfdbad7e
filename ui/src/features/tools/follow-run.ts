import { queryOptions, useQuery, useQueryClient } from '@tanstack/react-query';
import { useEffect, useEffectEvent } from 'react';
import { api, unwrap } from '@/lib/api-client';
import type { Job, Result, ResultItem, ToolName } from '@/lib/api-types';
import { isFinal, loadFollowing } from '@/lib/job-state';
import { jobsKey, queryKeys, runningKey } from '@/lib/query-keys';
import type { Tool } from './tool';
import { noteRunning } from './under-way/note-running';

/** How often the runs of other tools are asked after; a run of one's own is followed event by event. */
const LOOK_MS = 3_000;

type FollowRunOptions = {
  imageId: string;
  tool: ToolName;
  /** The key of the list that the new results belong to. */
  resultsKey: readonly unknown[];
  onDone: (results: Result[]) => void;
  onFailed: (job: Job) => void;
};

/** The runs of one image that wait or run, kept with the results of one tool. */
function jobsQuery(imageId: string, resultsKey: readonly unknown[]) {
  return queryOptions({
    queryKey: jobsKey(resultsKey),
    queryFn: async ({ signal }) => {
      const { jobs } = unwrap(await api.GET('/api/jobs', { params: { query: { imageId } }, signal }));
      return jobs.filter((job) => !isFinal(job));
    },
  });
}

/** The run that `useFollowRun` keeps up to date, for what stands around it; it asks for nothing. */
export function useFollowedRun({ name, resultsKey }: Pick<Tool, 'name' | 'resultsKey'>, imageId: string) {
  const { data } = useQuery({ ...jobsQuery(imageId, resultsKey(imageId)), enabled: false });
  return data?.find((job) => job.tool === name) ?? null;
}

/**
 * The image's running job of one tool, kept up to date until it ends. Because it is looked up by the
 * image, a job that was started before a reload, or in another tab, is picked up like one's own.
 */
export function useFollowRun({ imageId, tool, resultsKey, onDone, onFailed }: FollowRunOptions) {
  const queryClient = useQueryClient();
  const key = jobsKey(resultsKey);

  const jobs = useQuery({
    ...jobsQuery(imageId, resultsKey),
    refetchInterval: ({ state }) => state.data?.some((job) => job.tool !== tool) && LOOK_MS,
  });
  const job = jobs.data?.find((job) => job.tool === tool) ?? null;

  function track(next: Job) {
    noteRunning(queryClient, next);
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

  /** For an API that answered with the results instead of a job. */
  function finishAtOnce(results: Result[]) {
    refreshBalance();
    appendResults(results);
    onDone(results);
  }

  /** Credits are held, taken or given back at every end of a run; so is the image's free run. */
  function refreshBalance() {
    void queryClient.invalidateQueries({ queryKey: queryKeys.user });
    void queryClient.invalidateQueries({ queryKey: queryKeys.userImage(imageId) });
  }

  /** New results come last and are new; whatever was there before is not new any more. */
  function appendResults(results: Result[]) {
    const isListOnItsWay = queryClient.isFetching({ queryKey: resultsKey, exact: true }) > 0;
    queryClient.setQueryData<ResultItem[]>(resultsKey, (old = []) => {
      const ids = new Set(results.map(({ imageId }) => imageId));
      return [
        ...old.filter(({ imageId }) => !ids.has(imageId)).map((item) => ({ ...item, isNew: false })),
        ...results.map((result) => ({ ...result, isNew: true })),
      ];
    });
    // It may have been written before these existed, and would take them away again.
    if (isListOnItsWay) void queryClient.invalidateQueries({ queryKey: resultsKey, exact: true });
  }

  const onJob = useEffectEvent(track);
  const onLost = useEffectEvent(() => {
    // The job cannot be read any more; the lists say what became of it.
    queryClient.setQueryData<Job[]>(key, []);
    void queryClient.invalidateQueries({ queryKey: resultsKey, exact: true });
    void queryClient.invalidateQueries({ queryKey: runningKey });
  });

  const jobId = job?.id;
  useEffect(() => {
    if (!jobId) return;
    const following = new AbortController();
    loadFollowing()
      .then(({ followJob }) => followJob(jobId, following.signal, (next) => onJob(next)))
      .catch(() => !following.signal.aborted && onLost());
    return () => following.abort();
  }, [jobId]);

  return {
    job,
    others: jobs.data?.filter((job) => job.tool !== tool) ?? [],
    isLooking: jobs.isPending,
    track,
    finishAtOnce,
  };
}
