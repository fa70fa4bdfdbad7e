import { QueryCache, QueryClient, type QueryKey } from '@tanstack/react-query';
import { ApiError } from './api-client';
import { notifyError } from './notify';

const MINUTE = 60_000;

/** How long data nobody looks at is kept. */
export const keepFor = { lists: 5 * MINUTE, account: 15 * MINUTE };

declare module '@tanstack/react-query' {
  interface Register {
    queryMeta: {
      failure?: string;
      /** Belongs to something whose own call tells when it does not exist: nobody has to hear it twice. */
      isPart?: boolean;
    };
  }
}

export function createQueryClient() {
  return new QueryClient({
    queryCache: new QueryCache({
      onError: (error, query) => {
        // An expired session is answered by the way to /login, not by a failure of the list.
        if (error instanceof ApiError && error.status === 401) return;
        if (error instanceof ApiError && error.status === 404 && query.meta?.isPart) return;
        if (query.meta?.failure) notifyError(query.meta.failure);
      },
    }),
    defaultOptions: {
      // Without a network a call fails at once and says so. Held back, it would look like waiting, and a
      // paid run would start whenever the network returns.
      mutations: { networkMode: 'always' },
      queries: {
        networkMode: 'always',
        refetchOnReconnect: true,
        retry: false,
        refetchOnMount: true,
        refetchOnWindowFocus: false,
        staleTime: 0,
        gcTime: keepFor.lists,
      },
    },
  });
}

/**
 * Removes what is cached under a key, each query as soon as nobody looks at it. The page that shows it is
 * left only when the next one's code is there; a query removed before that is asked again by the next render.
 */
export function forgetWhenLeft(queryClient: QueryClient, queryKey: QueryKey) {
  const cache = queryClient.getQueryCache();
  const stop = cache.subscribe(({ type }) => type === 'observerRemoved' && sweep());

  function sweep() {
    queryClient.removeQueries({ queryKey, type: 'inactive' });
    if (cache.findAll({ queryKey }).length === 0) stop();
  }

  sweep();
}
