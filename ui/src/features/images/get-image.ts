import { queryOptions, useQuery } from '@tanstack/react-query';
import { api, unwrap } from '@/lib/api-client';
import { renewPictures } from '@/lib/picture-urls';
import { queryKeys } from '@/lib/query-keys';
import { imageTexts } from './texts';

export function imageQuery(imageId: string) {
  return queryOptions({
    queryKey: queryKeys.userImage(imageId),
    queryFn: async ({ signal }) =>
      unwrap(await api.GET('/api/images/{imageId}', { params: { path: { imageId } }, signal })),
    ...renewPictures,
    meta: { failure: imageTexts.imageFailedToast },
  });
}

export function useImage(imageId: string) {
  return useQuery(imageQuery(imageId));
}
