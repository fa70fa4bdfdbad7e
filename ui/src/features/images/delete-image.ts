import { useMutation, useQueryClient } from '@tanstack/react-query';
import { api, unwrap } from '@/lib/api-client';
import type { Image } from '@/lib/api-types';
import { notifyError } from '@/lib/notify';
import { removeWhenUnused } from '@/lib/query-client';
import { queryKeys } from '@/lib/query-keys';
import { imageTexts } from './texts';

/** Deletes an image and all its results. */
export function useDeleteImage(imageId: string) {
  const queryClient = useQueryClient();

  return useMutation({
    mutationFn: async () =>
      unwrap(await api.DELETE('/api/images/{imageId}', { params: { path: { imageId } } })),
    onSuccess: () => {
      removeWhenUnused(queryClient, queryKeys.userImage(imageId));
      removeWhenUnused(queryClient, queryKeys.rmbgImages(imageId));
      removeWhenUnused(queryClient, queryKeys.upscaledImages(imageId));
      removeWhenUnused(queryClient, queryKeys.magicImages(imageId));
      // Hides the image at once; the refetch confirms it.
      queryClient.setQueryData<Image[]>(queryKeys.userImages, (old) =>
        old?.filter(({ id }) => id !== imageId),
      );
      void queryClient.invalidateQueries({ queryKey: queryKeys.userImages });
    },
    onError: () => notifyError(imageTexts.deleteFailed),
  });
}
