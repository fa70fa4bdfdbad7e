import { useQuery, useQueryClient } from '@tanstack/react-query';
import { api, unwrap } from '@/lib/api-client';
import type { PaymentStatus } from '@/lib/api-types';
import { checkoutKey, paymentKey, queryKeys } from '@/lib/query-keys';

const POLL_MS = 15_000;
/** Long enough for the way from /return to /checkout or back, which need not ask twice. */
const FRESH_MS = 2_000;

/** Ordered, but the money comes later, as with a bank transfer. */
export function isOnItsWay({ status, order_status }: PaymentStatus): boolean {
  return status === 'complete' && (order_status === 'open' || order_status === 'unpaid');
}

/** How the payment on one page of the payment provider stands. */
export function usePaymentStatus(sessionId: string | null) {
  const queryClient = useQueryClient();
  return useQuery({
    queryKey: paymentKey(sessionId ?? ''),
    queryFn: async ({ signal }) => {
      const path = { sessionId: sessionId ?? '' };
      const payment = unwrap(
        await api.GET('/api/payments/session-status/{sessionId}', { params: { path }, signal }),
      );
      // The API grants what is paid for on the way, so what was known of credits and orders is old.
      if (payment.status === 'complete') {
        for (const queryKey of [queryKeys.user, queryKeys.checkouts, checkoutKey(payment.checkout_id)]) {
          void queryClient.invalidateQueries({ queryKey, exact: true });
        }
      }
      return payment;
    },
    enabled: sessionId !== null,
    staleTime: FRESH_MS,
    // Somebody may have paid in another tab.
    refetchOnWindowFocus: true,
    refetchInterval: ({ state }) => (state.data && isOnItsWay(state.data) ? POLL_MS : false),
  });
}
