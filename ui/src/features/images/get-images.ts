import { useQuery } from '@tanstack/react-query';
import { api, unwrap } from '@/lib/api-client';
import { renewPictures } from '@/lib/picture-urls';
import { cacheTime } from '@/lib/query-client';
import { queryKeys } from '@/lib/query-keys';
import { imageTexts } from './texts';

export function useImages() {
  return useQuery({
    queryKey: queryKeys.userImages,
    queryFn: async ({ signal }) => unwrap(await api.GET('/api/images', { signal })).images,
    gcTime: cacheTime.account,
    ...renewPictures,
    meta: { failure: imageTexts.listFailedToast },
  });
}
