import { useMutation, useQueryClient } from '@tanstack/react-query';
import { api, unwrap } from '@/lib/api-client';
import type { Image } from '@/lib/api-types';
import { notifyError } from '@/lib/notify';
import { forgetWhenLeft } from '@/lib/query-client';
import { queryKeys } from '@/lib/query-keys';
import { imageTexts } from './texts';

/** Deletes an image with everything made from it. */
export function useDeleteImage(imageId: string) {
  const queryClient = useQueryClient();

  return useMutation({
    mutationFn: async () =>
      unwrap(await api.DELETE('/api/images/{imageId}', { params: { path: { imageId } } })),
    onSuccess: () => {
      forgetWhenLeft(queryClient, queryKeys.userImage(imageId));
      forgetWhenLeft(queryClient, queryKeys.rmbgImages(imageId));
      forgetWhenLeft(queryClient, queryKeys.upscaledImages(imageId));
      forgetWhenLeft(queryClient, queryKeys.magicImages(imageId));
      // At once, so that the list never shows it again; asked anew all the same.
      queryClient.setQueryData<Image[]>(queryKeys.userImages, (old) =>
        old?.filter(({ id }) => id !== imageId),
      );
      void queryClient.invalidateQueries({ queryKey: queryKeys.userImages });
    },
    onError: () => notifyError(imageTexts.deleteFailed),
  });
}
