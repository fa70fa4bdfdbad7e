import { infiniteQueryOptions, keepPreviousData, useInfiniteQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import { api, unwrap } from '@/lib/api-client';
import { renewPictures } from '@/lib/picture-urls';
import { cacheTime } from '@/lib/query-client';
import { queryKeys } from '@/lib/query-keys';
import type { ImageFilter } from './image-filter';
import { imageTexts } from './texts';

/** Fills whole rows of 2, 3, 4, 6 and 8 columns. */
const PAGE_SIZE = 48;

export function imagesQuery({ search, sort }: ImageFilter) {
  return infiniteQueryOptions({
    queryKey: [...queryKeys.userImages, { search, sort }] as const,
    queryFn: async ({ signal, pageParam: before }) => {
      const query = { limit: PAGE_SIZE, before, search: search || undefined, sort };
      return unwrap(await api.GET('/api/images', { params: { query }, signal }));
    },
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ next }) => next ?? undefined,
    gcTime: cacheTime.account,
    ...renewPictures,
    meta: { failure: imageTexts.listFailedToast },
  });
}

export type Images = ReturnType<typeof useImages>;

/** The user's images, page by page. The images of the last search stay until the next search has its images. */
export function useImages(filter: ImageFilter) {
  const query = useInfiniteQuery({ ...imagesQuery(filter), placeholderData: keepPreviousData });
  const pages = query.data?.pages;
  const images = useMemo(() => pages?.flatMap(({ images }) => images), [pages]);
  return { ...query, images, total: pages?.[0]?.total ?? images?.length ?? 0 };
}
