import type { QueryClient } from '@tanstack/react-query';
import { api, MAX_ANSWER_MS, unwrap } from '@/lib/api-client';
import type { Image } from '@/lib/api-types';
import { queryKeys } from '@/lib/query-keys';

/**
 * Returns the image of a result. The API makes it the first time, and returns the same one from then on, so a request
 * that ended on a dead connection can be repeated.
 */
export async function imageFromResult(
  queryClient: QueryClient,
  resultId: string,
  signal = AbortSignal.timeout(MAX_ANSWER_MS),
): Promise<Image> {
  const image = unwrap(
    await api.POST('/api/images/from-result/{resultId}', { params: { path: { resultId } }, signal }),
  );
  // The next page opens without waiting for it.
  queryClient.setQueryData<Image>(queryKeys.userImage(image.id), image);
  void queryClient.invalidateQueries({ queryKey: queryKeys.userImages });
  return image;
}
