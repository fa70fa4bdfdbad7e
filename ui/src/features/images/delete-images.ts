import { useMutation, useQueryClient } from '@tanstack/react-query';
import { api, unwrap } from '@/lib/api-client';
import { notifyError } from '@/lib/notify';
import { queryKeys } from '@/lib/query-keys';
import { formatNumber, plural, t } from '@/lib/translate';
import { forgetImage, removeFromLists } from './image-lists';
import { imageTexts } from './texts';

/** The API deletes this many images in one call. */
const MAX_PER_CALL = 500;

/** Some of the images may be deleted when a call fails. */
class NotAllDeleted extends Error {
  constructor(readonly deleted: string[]) {
    super('Not all images were deleted');
  }
}

/** Deletes several images and all their results. They disappear at once; those that could not be deleted come back. */
export function useDeleteImages() {
  const queryClient = useQueryClient();

  function forget(imageIds: string[]) {
    for (const imageId of imageIds) forgetImage(queryClient, imageId);
  }

  return useMutation({
    mutationFn: deleteImages,
    onMutate: async (imageIds) => {
      // A list requested before the deletion would bring them back.
      await queryClient.cancelQueries({ queryKey: queryKeys.userImages });
      return { undo: removeFromLists(queryClient, imageIds) };
    },
    onSuccess: (deleted, imageIds) => {
      forget(deleted);
      const missing = imageIds.length - deleted.length;
      if (missing === 0) return;
      notifyError(
        [
          t('Deleted {count} of {total} images.', {
            count: formatNumber(deleted.length),
            total: formatNumber(imageIds.length),
          }),
          plural(missing, { one: 'The other one was not found.', other: 'The other # were not found.' }),
        ].join(' '),
      );
    },
    onError: (error, imageIds, context) => {
      const deleted = error instanceof NotAllDeleted ? error.deleted : [];
      context?.undo();
      removeFromLists(queryClient, deleted);
      forget(deleted);
      const left = imageIds.length - deleted.length;
      notifyError(
        imageIds.length === 1
          ? t(imageTexts.deleteFailed)
          : t('Failed to delete {count} of {total} images, try again later', {
              count: formatNumber(left),
              total: formatNumber(imageIds.length),
            }),
      );
    },
    onSettled: () => queryClient.invalidateQueries({ queryKey: queryKeys.userImages }),
  });
}

/** Resolves to the images that were there and are gone. */
async function deleteImages(imageIds: string[]): Promise<string[]> {
  const deleted: string[] = [];
  for (let at = 0; at < imageIds.length; at += MAX_PER_CALL) {
    const body = { imageIds: imageIds.slice(at, at + MAX_PER_CALL) };
    try {
      deleted.push(...unwrap(await api.POST('/api/images/delete', { body })).deleted);
    } catch {
      throw new NotAllDeleted(deleted);
    }
  }
  return deleted;
}
