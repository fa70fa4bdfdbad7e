import { infiniteQueryOptions, useInfiniteQuery } from '@tanstack/react-query';
import { api, unwrap } from '@/lib/api-client';
import { deliveriesKey } from '@/lib/query-keys';
import { serverNow } from '@/lib/server-clock';
import { webhookTexts } from './texts';

/** How often to look while something is on its way. */
const POLL_MS = 2_000;
/** Until when a delivery counts as on its way; later ones wait for their next attempt. */
const SOON_MS = 10_000;

const deliveriesQuery = (webhookId: string) =>
  infiniteQueryOptions({
    queryKey: deliveriesKey(webhookId),
    queryFn: async ({ signal, pageParam }) =>
      unwrap(
        await api.GET('/api/webhooks/{webhookId}/deliveries', {
          signal,
          params: { path: { webhookId }, query: { before: pageParam } },
        }),
      ),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ next }) => next ?? undefined,
    refetchInterval: ({ state }) => {
      const newest = state.data?.pages[0]?.deliveries ?? [];
      const isSoon = (time: string | null | undefined) =>
        time != null && Date.parse(time) < serverNow() + SOON_MS;
      return newest.some(({ nextAttemptAt }) => isSoon(nextAttemptAt)) && POLL_MS;
    },
    meta: { failure: webhookTexts.deliveriesFailedToast },
  });

/** The last deliveries of a webhook, in pages. */
export function useDeliveries(webhookId: string) {
  return useInfiniteQuery(deliveriesQuery(webhookId));
}
