import { useQueryClient } from '@tanstack/react-query';
import { useEffect, useEffectEvent } from 'react';
import type { Job, Result, ToolName } from '@/lib/api-types';
import { useActiveJobs } from './get-active-jobs';
import { followerOf } from './run-follower';

type ImageRunsOptions = {
  imageId: string;
  tool: ToolName;
  onDone: (results: Result[]) => void;
  onFailed: (job: Job) => void;
};

/** The active jobs of one image, whoever started them and where, and the ends of those of one tool. */
export function useImageRuns({ imageId, tool, onDone, onFailed }: ImageRunsOptions) {
  const follower = followerOf(useQueryClient());
  const jobs = useActiveJobs();
  const ofImage = jobs.data?.filter((job) => job.imageId === imageId) ?? [];

  const onEnd = useEffectEvent((job: Job) => {
    if (job.state === 'done') onDone(job.results);
    if (job.state === 'failed') onFailed(job);
  });
  useEffect(() => follower.listen({ imageId, tool, onEnd: (job) => onEnd(job) }), [follower, imageId, tool]);

  return {
    job: ofImage.find((job) => job.tool === tool) ?? null,
    otherJobs: ofImage.filter((job) => job.tool !== tool),
    isLoading: jobs.isPending,
    update: follower.update,
    /** Records the results of an API that answered without a job. */
    complete: (results: Result[]) => {
      follower.complete(imageId, tool, results);
      onDone(results);
    },
  };
}
