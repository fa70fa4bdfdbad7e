import { useQuery, useQueryClient } from '@tanstack/react-query';
import { api, unwrap } from '@/lib/api-client';
import type { PaymentStatus } from '@/lib/api-types';
import { checkoutKey, paymentKey, queryKeys } from '@/lib/query-keys';

const POLL_MS = 15_000;
/** Avoids a second request on the redirect between /return and /checkout. */
const FRESH_MS = 2_000;

/** Whether the order is complete but unpaid, as with a bank transfer. */
export function isAwaitingMoney({ status, order_status }: PaymentStatus): boolean {
  return status === 'complete' && (order_status === 'open' || order_status === 'unpaid');
}

/** The status of one session at the payment provider. */
export function usePaymentStatus(sessionId: string | null) {
  const queryClient = useQueryClient();
  return useQuery({
    queryKey: paymentKey(sessionId ?? ''),
    queryFn: async ({ signal }) => {
      const path = { sessionId: sessionId ?? '' };
      const payment = unwrap(
        await api.GET('/api/payments/session-status/{sessionId}', { params: { path }, signal }),
      );
      // This request made the API grant the credits, so cached credits and orders are stale.
      if (payment.status === 'complete') {
        for (const queryKey of [queryKeys.user, queryKeys.checkouts, checkoutKey(payment.checkout_id)]) {
          void queryClient.invalidateQueries({ queryKey, exact: true });
        }
      }
      return payment;
    },
    enabled: sessionId !== null,
    staleTime: FRESH_MS,
    // The user may have paid in another tab.
    refetchOnWindowFocus: true,
    refetchInterval: ({ state }) => (state.data && isAwaitingMoney(state.data) ? POLL_MS : false),
  });
}
