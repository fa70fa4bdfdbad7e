import type { QueryClient } from '@tanstack/react-query';
import { useQueryClient } from '@tanstack/react-query';
import { useEffect, useEffectEvent, useRef } from 'react';
import { useLocation, useNavigate } from 'react-router';
import { api, unwrap } from '@/lib/api-client';
import type { Job, ToolName } from '@/lib/api-types';
import { isFinal } from '@/lib/job-state';
import { queryKeys } from '@/lib/query-keys';
import { isShownAt } from './running-address';

const loadNews = () => import('./run-news');

const resultsKeyOf: Record<ToolName, (imageId: string) => readonly string[]> = {
  'remove-background': queryKeys.rmbgImages,
  upscale: queryKeys.upscaledImages,
  'magic-fix': queryKeys.magicImages,
};

/** Takes note of every run that is not among the running ones any more, wherever the person is by then. */
export function useEnded(jobs: Job[] | undefined) {
  const queryClient = useQueryClient();
  const navigate = useNavigate();
  const { pathname } = useLocation();
  const before = useRef<Job[]>([]);

  const end = useEffectEvent((job: Job) => {
    // Its own page follows it to the end, and says and shows itself what has become of it.
    if (isShownAt(job, pathname)) return;
    refresh(queryClient, job);
    void tell(job, (to, state) => void navigate(to, { state }));
  });

  useEffect(() => {
    if (!jobs) return;
    const ended = before.current.filter(({ id }) => !jobs.some((job) => job.id === id));
    before.current = jobs;
    for (const job of ended) end(job);
  }, [jobs]);
}

function refresh(queryClient: QueryClient, { tool, imageId }: Job) {
  void queryClient.invalidateQueries({ queryKey: queryKeys.user, exact: true });
  if (!imageId) return;
  void queryClient.invalidateQueries({ queryKey: resultsKeyOf[tool](imageId) });
  // Its free run is used up by then, or there again.
  void queryClient.invalidateQueries({ queryKey: queryKeys.userImage(imageId) });
}

async function tell({ id }: Job, open: (to: string, state: unknown) => void) {
  try {
    const path = { jobId: id };
    const job = unwrap(await api.GET('/api/jobs/{jobId}', { params: { path } }));
    if (isFinal(job)) (await loadNews()).tellOfRun(job, open);
  } catch {
    // Deleted with its image, or without a network: there is nothing to lead to.
  }
}
