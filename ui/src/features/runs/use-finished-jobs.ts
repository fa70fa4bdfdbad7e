import { type QueryClient, useQueryClient } from '@tanstack/react-query';
import { useEffect, useEffectEvent, useRef } from 'react';
import { useLocation, useNavigate } from 'react-router';
import { api, unwrap } from '@/lib/api-client';
import type { Job, ToolName } from '@/lib/api-types';
import { queryKeys } from '@/lib/query-keys';
import { isJobPage } from './job-page';
import { isFinal } from './job-state';

const loadRunToast = () => import('./run-toast');

const resultsKey: Record<ToolName, (imageId: string) => readonly string[]> = {
  'remove-background': queryKeys.rmbgImages,
  upscale: queryKeys.upscaledImages,
  'magic-fix': queryKeys.magicImages,
};

/** Refreshes the cache and shows a toast for every job that has left the list of active jobs. */
export function useFinishedJobs(jobs: Job[] | undefined) {
  const queryClient = useQueryClient();
  const navigate = useNavigate();
  const { pathname } = useLocation();
  const previous = useRef<Job[]>([]);

  const finish = useEffectEvent((job: Job) => {
    // The job's own page follows it to the end and shows the outcome.
    if (isJobPage(job, pathname)) return;
    refresh(queryClient, job);
    void showOutcome(job, (to, state) => void navigate(to, { state }));
  });

  useEffect(() => {
    if (!jobs) return;
    const finished = previous.current.filter(({ id }) => !jobs.some((job) => job.id === id));
    previous.current = jobs;
    for (const job of finished) finish(job);
  }, [jobs]);
}

function refresh(queryClient: QueryClient, { tool, imageId }: Job) {
  void queryClient.invalidateQueries({ queryKey: queryKeys.user, exact: true });
  if (!imageId) return;
  void queryClient.invalidateQueries({ queryKey: resultsKey[tool](imageId) });
  // The image's free run may have been used, or released by a failure.
  void queryClient.invalidateQueries({ queryKey: queryKeys.userImage(imageId) });
}

async function showOutcome({ id }: Job, navigate: (to: string, state: unknown) => void) {
  try {
    const path = { jobId: id };
    const job = unwrap(await api.GET('/api/jobs/{jobId}', { params: { path } }));
    if (isFinal(job)) (await loadRunToast()).showRunToast(job, navigate);
  } catch {
    // Deleted with its image, or no network: there is no outcome to show.
  }
}
