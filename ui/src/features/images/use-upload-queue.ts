import { useQueryClient } from '@tanstack/react-query';
import { useConfig } from '@/lib/env';
import { queueUploads } from './upload-queue';

/** Returns a function that uploads several files for the pages `{prefix}/{imageId}`. The shell shows their progress. */
export function useUploadQueue(prefix: string, maxDimension: number) {
  const queryClient = useQueryClient();
  const { limits } = useConfig();
  return (files: File[]) =>
    queueUploads(queryClient, files, prefix, { maxDimension, maxBytes: limits.maxUploadBytes });
}
