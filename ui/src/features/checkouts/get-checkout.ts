import { queryOptions, useQuery } from '@tanstack/react-query';
import { api, unwrap } from '@/lib/api-client';
import { cacheTime } from '@/lib/query-client';
import { checkoutKey } from '@/lib/query-keys';
import { checkoutTexts } from './texts';

const POLL_MS = 3 * 60_000;

export function checkoutQuery(checkoutId: string) {
  return queryOptions({
    queryKey: checkoutKey(checkoutId),
    queryFn: async ({ signal }) =>
      unwrap(await api.GET('/api/checkouts/{checkoutId}', { params: { path: { checkoutId } }, signal }))
        .checkout,
    gcTime: cacheTime.account,
    refetchInterval: POLL_MS,
    meta: { failure: checkoutTexts.oneFailedToast },
  });
}

export function useCheckout(checkoutId: string) {
  return useQuery(checkoutQuery(checkoutId));
}
