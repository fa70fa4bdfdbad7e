import type { InfiniteData, QueryClient } from '@tanstack/react-query';
import type { ImageList } from '@/lib/api-types';
import { removeWhenUnused } from '@/lib/query-client';
import { queryKeys } from '@/lib/query-keys';

type CachedList = InfiniteData<ImageList>;

/** Removes images from all lists before the server has. Returns a function that puts them back. */
export function removeFromLists(queryClient: QueryClient, imageIds: string[]): () => void {
  const gone = new Set(imageIds);
  const lists = queryClient.getQueriesData<CachedList>({ queryKey: queryKeys.userImages });
  queryClient.setQueriesData<CachedList>(
    { queryKey: queryKeys.userImages },
    (old) => old && without(old, gone),
  );
  return () => {
    for (const [key, list] of lists) queryClient.setQueryData(key, list);
  };
}

function without({ pages, pageParams }: CachedList, gone: Set<string>): CachedList {
  const left = pages.map((page) => ({ ...page, images: page.images.filter(({ id }) => !gone.has(id)) }));
  const count = (all: ImageList[]) => all.reduce((sum, { images }) => sum + images.length, 0);
  const removed = count(pages) - count(left);
  const [first, ...others] = left;
  if (first?.total != null) first.total -= removed;
  return { pages: first ? [first, ...others] : [], pageParams };
}

/** Removes an image that no longer exists from the cache. */
export function forgetImage(queryClient: QueryClient, imageId: string) {
  removeWhenUnused(queryClient, queryKeys.userImage(imageId));
  removeWhenUnused(queryClient, queryKeys.rmbgImages(imageId));
  removeWhenUnused(queryClient, queryKeys.upscaledImages(imageId));
  removeWhenUnused(queryClient, queryKeys.magicImages(imageId));
}
