import { useQuery } from '@tanstack/react-query';
import { api, unwrap } from '@/lib/api-client';
import { queryKeys } from '@/lib/query-keys';
import { imageTexts } from './texts';

export function useImage(imageId: string) {
  return useQuery({
    queryKey: queryKeys.userImage(imageId),
    queryFn: async ({ signal }) =>
      unwrap(await api.GET('/api/images/{imageId}', { params: { path: { imageId } }, signal })),
    meta: { failure: imageTexts.imageFailedToast },
  });
}
