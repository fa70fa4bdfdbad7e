import { useMutation, useQueryClient } from '@tanstack/react-query';
import { api, unwrapDeletion } from '@/lib/api-client';
import { notifyError } from '@/lib/notify';
import { queryKeys } from '@/lib/query-keys';
import { t } from '@/lib/translate';
import { forgetImage, removeFromLists } from './image-lists';
import { imageTexts } from './texts';

/** Deletes an image and all its results. */
export function useDeleteImage(imageId: string) {
  const queryClient = useQueryClient();

  return useMutation({
    mutationFn: async () =>
      unwrapDeletion(await api.DELETE('/api/images/{imageId}', { params: { path: { imageId } } })),
    onSuccess: () => {
      forgetImage(queryClient, imageId);
      // Hides the image at once; the refetch confirms it.
      removeFromLists(queryClient, [imageId]);
      void queryClient.invalidateQueries({ queryKey: queryKeys.userImages });
    },
    onError: () => notifyError(t(imageTexts.deleteFailed)),
  });
}
