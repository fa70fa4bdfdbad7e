import type {
  FetchInfiniteQueryOptions,
  FetchQueryOptions,
  QueryClient,
  QueryKey,
} from '@tanstack/react-query';
import type { Params } from 'react-router';
import { imageQuery } from '@/features/images/get-image';
import { imagesQuery } from '@/features/images/get-images';
import { allImages, imageFilterOf } from '@/features/images/image-filter';
import { AHEAD_MS, noteLoadedAhead } from '@/lib/loaded-ahead';

/** Starts to load what a user sees on a page. Failures are left to the page, which asks again. */
type LoadData = (queryClient: QueryClient, params: Params, search: URLSearchParams) => Promise<void> | void;

/** What each kind of page loads for a user. */
export const pageData = {
  images: (queryClient, _, search) => pages(queryClient, imagesQuery(imageFilterOf(search))),
  picker: (queryClient) => pages(queryClient, imagesQuery(allImages)),
  image: (queryClient, { imageId = '' }) => one(queryClient, imageQuery(imageId)),
  // The queries of pages that few people open are loaded with them.
  account: async (queryClient) => {
    one(queryClient, (await import('@/features/account/get-storage')).storageQuery);
    one(queryClient, (await import('@/features/account/get-api-keys')).apiKeysQuery);
  },
  checkouts: async (queryClient) => {
    one(queryClient, (await import('@/features/checkouts/get-checkouts')).checkoutsQuery);
  },
  checkout: async (queryClient, { checkoutId = '' }) => {
    one(queryClient, (await import('@/features/checkouts/get-checkout')).checkoutQuery(checkoutId));
  },
} satisfies Record<string, LoadData>;

export type PageData = keyof typeof pageData;

function one<T, Data, Key extends QueryKey>(
  queryClient: QueryClient,
  query: FetchQueryOptions<T, Error, Data, Key>,
) {
  void queryClient.prefetchQuery({ ...query, staleTime: AHEAD_MS });
  noteLoadedAhead(queryClient, query.queryKey);
}

function pages<T, Data, Key extends QueryKey, Param>(
  queryClient: QueryClient,
  query: FetchInfiniteQueryOptions<T, Error, Data, Key, Param>,
) {
  void queryClient.prefetchInfiniteQuery({ ...query, staleTime: AHEAD_MS });
  noteLoadedAhead(queryClient, query.queryKey);
}
