import { queryOptions, useQuery } from '@tanstack/react-query';
import { api, unwrap } from '@/lib/api-client';
import { cacheTime } from '@/lib/query-client';
import { queryKeys } from '@/lib/query-keys';
import { checkoutTexts } from './texts';

/** The user's orders, newest first. */
export const checkoutsQuery = queryOptions({
  queryKey: queryKeys.checkouts,
  queryFn: async ({ signal }) => unwrap(await api.GET('/api/checkouts/', { signal })).sessions,
  gcTime: cacheTime.account,
  meta: { failure: checkoutTexts.listFailedToast },
});

export function useCheckouts() {
  return useQuery(checkoutsQuery);
}
