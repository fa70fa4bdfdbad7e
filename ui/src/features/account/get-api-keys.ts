import { queryOptions, useQuery } from '@tanstack/react-query';
import { api, unwrap } from '@/lib/api-client';
import { cacheTime } from '@/lib/query-client';
import { apiKeysKey } from '@/lib/query-keys';
import { accountTexts } from './texts';

export const apiKeysQuery = queryOptions({
  queryKey: apiKeysKey,
  queryFn: async ({ signal }) => unwrap(await api.GET('/api/keys', { signal })).keys,
  gcTime: cacheTime.account,
  meta: { failure: accountTexts.keysFailedToast },
});

export function useApiKeys() {
  return useQuery(apiKeysQuery);
}
