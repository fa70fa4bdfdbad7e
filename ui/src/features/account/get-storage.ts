import { queryOptions, useQuery } from '@tanstack/react-query';
import { api, unwrap } from '@/lib/api-client';
import { cacheTime } from '@/lib/query-client';
import { storageKey } from '@/lib/query-keys';
import { accountTexts } from './texts';

/** What the user stores, and how much they may store. */
export const storageQuery = queryOptions({
  queryKey: storageKey,
  queryFn: async ({ signal }) => unwrap(await api.GET('/api/user/storage', { signal })),
  gcTime: cacheTime.account,
  meta: { failure: accountTexts.storageFailed },
});

export function useStorage() {
  return useQuery(storageQuery);
}
