import type {
  FetchInfiniteQueryOptions,
  FetchQueryOptions,
  QueryClient,
  QueryKey,
} from '@tanstack/react-query';
import type { Params } from 'react-router';
import type { Tool } from '@/features/catalog/tool';
import { imageQuery } from '@/features/images/get-image';
import type { ToolName } from '@/lib/api-types';
import { AHEAD_MS, noteLoadedAhead } from '@/lib/loaded-ahead';

/** Starts to load the data of a page. If that fails, the page itself loads the data again. */
type LoadData = (
  queryClient: QueryClient,
  params: Params,
  search: URLSearchParams,
  tool: ToolName | undefined,
) => Promise<void> | void;

const loadTools = {
  'remove-background': async () => (await import('@/features/catalog/remove-background')).removeBackground,
  upscale: async () => (await import('@/features/catalog/upscale')).upscale,
  'magic-fix': async () => (await import('@/features/catalog/magic-fix')).magicFix,
} satisfies Record<ToolName, () => Promise<Tool>>;

const loadImages = () => import('@/features/images/get-images');
const loadFilter = () => import('@/features/images/image-filter');

/** What each kind of page loads for a user. Only what many pages need is loaded with this file. */
export const pageData = {
  images: async (queryClient, _, search) => {
    const [{ imagesQuery }, { imageFilterOf }] = await Promise.all([loadImages(), loadFilter()]);
    pages(queryClient, imagesQuery(imageFilterOf(search)));
  },
  picker: async (queryClient) => {
    const [{ imagesQuery }, { allImages }] = await Promise.all([loadImages(), loadFilter()]);
    pages(queryClient, imagesQuery(allImages));
  },
  /** The image and its results: the results of one tool, or of all tools on the image's own page. */
  image: async (queryClient, { imageId = '' }, _, tool) => {
    one(queryClient, imageQuery(imageId));
    const { resultsQuery } = await import('@/features/results/get-results');
    const tools = await Promise.all(
      tool ? [loadTools[tool]()] : Object.values(loadTools).map((load) => load()),
    );
    for (const each of tools) one(queryClient, resultsQuery(each, imageId));
  },
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
