import { QueryCache, QueryClient, type QueryKey } from '@tanstack/react-query';
import { type Message, t } from '@/lib/translate';
import { ApiError } from './api-client';
import { isLoadedAhead } from './loaded-ahead';
import { notifyError } from './notify';

const MINUTE = 60_000;

/** How long unused data stays in the cache. */
export const cacheTime = { lists: 5 * MINUTE, account: 15 * MINUTE };

declare module '@tanstack/react-query' {
  interface Register {
    queryMeta: {
      /** The toast for a failed query. */
      failure?: Message;
      /** No toast for a 404: the query for the parent object already reports it. */
      ignoreNotFound?: boolean;
    };
  }
}

export function createQueryClient() {
  return new QueryClient({
    queryCache: new QueryCache({
      onError: (error, query) => {
        // An expired session redirects to /login instead.
        if (error instanceof ApiError && error.status === 401) return;
        if (error instanceof ApiError && error.status === 404 && query.meta?.ignoreNotFound) return;
        // No page shows it: it was loaded ahead, and the page will ask again.
        if (!query.isActive()) return;
        if (query.meta?.failure) notifyError(t(query.meta.failure));
      },
    }),
    defaultOptions: {
      // Offline calls fail at once. A paused call would look like waiting, and a paid run would start whenever the
      // network returns.
      mutations: { networkMode: 'always' },
      queries: {
        networkMode: 'always',
        refetchOnReconnect: true,
        retry: false,
        refetchOnMount: (query) => !isLoadedAhead(query),
        refetchOnWindowFocus: false,
        staleTime: 0,
        gcTime: cacheTime.lists,
      },
    },
  });
}

/**
 * Removes the queries under a key as soon as nothing observes them. The current page stays mounted until the next
 * page's code has loaded; a query removed before that would be fetched again by the next render.
 */
export function removeWhenUnused(queryClient: QueryClient, queryKey: QueryKey) {
  const cache = queryClient.getQueryCache();
  const unsubscribe = cache.subscribe(({ type }) => type === 'observerRemoved' && removeInactive());

  function removeInactive() {
    queryClient.removeQueries({ queryKey, type: 'inactive' });
    if (cache.findAll({ queryKey }).length === 0) unsubscribe();
  }

  removeInactive();
}
