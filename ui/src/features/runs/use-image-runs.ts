import { useQueryClient } from '@tanstack/react-query';
import { useEffect, useEffectEvent } from 'react';
import type { Job, Result, ToolName } from '@/lib/api-types';
import { useActiveJobs } from './get-active-jobs';
import { followerOf } from './run-follower';

type ImageRunsOptions = {
  imageId: string;
  /** Another image, whose jobs of the tool count too. */
  targetId: string | null;
  tool: ToolName;
  onEnd: (job: Job) => void;
};

/** The active jobs of one image, wherever they were started, and the ends of one tool's jobs. */
export function useImageRuns({ imageId, targetId, tool, ...events }: ImageRunsOptions) {
  const follower = followerOf(useQueryClient());
  const jobs = useActiveJobs();
  const ofImage = jobs.data?.filter((job) => job.imageId === imageId) ?? [];

  const onEnd = useEffectEvent(events.onEnd);
  useEffect(() => follower.listen({ imageId, tool, onEnd: (job) => onEnd(job) }), [follower, imageId, tool]);
  useEffect(() => {
    if (targetId && targetId !== imageId)
      return follower.listen({ imageId: targetId, tool, onEnd: (job) => onEnd(job) });
  }, [follower, imageId, targetId, tool]);

  const isOfTarget = (job: Job) => job.imageId === imageId || job.imageId === targetId;

  return {
    job: jobs.data?.find((job) => job.tool === tool && isOfTarget(job)) ?? null,
    otherJobs: ofImage.filter((job) => job.tool !== tool),
    isLoading: jobs.isPending,
    update: follower.update,
    /** Records the results of an API that answered without a job. */
    complete: (ofImage: string, results: Result[]) => follower.complete(ofImage, tool, results),
  };
}
