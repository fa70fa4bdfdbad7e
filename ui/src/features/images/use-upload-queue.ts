import { useQueryClient } from '@tanstack/react-query';
import { useConfig } from '@/lib/env';
import { fileLimits } from '@/lib/use-chosen-image';
import { queueUploads } from './upload-queue';

/** Returns a function that uploads several files for the pages `{prefix}/{imageId}`. The shell shows their progress. */
export function useUploadQueue(prefix: string, maxDimension: number) {
  const queryClient = useQueryClient();
  const config = useConfig();
  return (files: File[]) => queueUploads(queryClient, files, prefix, fileLimits(config, maxDimension));
}
