import { useQueryClient } from '@tanstack/react-query';
import { useEffect, useRef } from 'react';
import type { Job } from '@/lib/api-types';
import { queryKeys } from '@/lib/query-keys';
import { useRunning } from './get-running';
import RunningList from './running-list';

/** What is being made of one image; what it becomes appears in the lists of its page. */
export default function RunningHere({ imageId }: { imageId: string }) {
  const queryClient = useQueryClient();
  const { data } = useRunning();
  const jobs = data?.filter((job) => job.imageId === imageId) ?? [];
  const before = useRef<Job[]>([]);
  const ids = jobs.map(({ id }) => id).join();

  // biome-ignore lint/correctness/useExhaustiveDependencies: the ids say when the list has changed.
  useEffect(() => {
    const hasEnded = before.current.some(({ id }) => !jobs.some((job) => job.id === id));
    before.current = jobs;
    if (!hasEnded) return;
    for (const key of [queryKeys.rmbgImages, queryKeys.upscaledImages, queryKeys.magicImages]) {
      void queryClient.invalidateQueries({ queryKey: key(imageId), exact: true });
    }
    void queryClient.invalidateQueries({ queryKey: queryKeys.user, exact: true });
  }, [ids, imageId, queryClient]);

  return <RunningList jobs={jobs} />;
}
