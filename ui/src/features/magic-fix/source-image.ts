import { useQuery } from '@tanstack/react-query';
import { api, unwrap } from '@/lib/api-client';
import type { Image } from '@/lib/api-types';
import { renewPictures } from '@/lib/picture-urls';
import { queryKeys } from '@/lib/query-keys';

/** Returns the image that a fixed image was made from, while it exists. */
export function useSourceImage({ madeFrom }: Image): Image | undefined {
  const imageId = (madeFrom?.tool === 'magic-fix' && madeFrom.imageId) || '';
  const { data } = useQuery({
    queryKey: queryKeys.userImage(imageId),
    queryFn: async ({ signal }) =>
      unwrap(await api.GET('/api/images/{imageId}', { params: { path: { imageId } }, signal })),
    enabled: imageId !== '',
    ...renewPictures,
    meta: { ignoreNotFound: true },
  });
  return imageId ? data : undefined;
}
