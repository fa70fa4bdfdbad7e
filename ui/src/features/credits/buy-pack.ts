import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useLayoutEffect, useRef } from 'react';
import { ApiError, api, unwrap } from '@/lib/api-client';
import { leavePage } from '@/lib/leave-page';
import { newId } from '@/lib/new-id';
import { notifyError } from '@/lib/notify';
import { queryKeys } from '@/lib/query-keys';
import { t } from '@/lib/translate';

const checkoutSessions = {
  1: '/api/payments/create-checkout-session-1',
  2: '/api/payments/create-checkout-session-2',
  3: '/api/payments/create-checkout-session-3',
} as const;

export type PackNumber = keyof typeof checkoutSessions;

type Purchase = { pack: PackNumber; key: string };

/** Orders a pack and navigates to the payment provider's page. */
export function useBuyPack() {
  const queryClient = useQueryClient();
  // Each click has its own idempotency key. After a lost connection or a 5xx the key is reused: the order may exist.
  const pending = useRef<Purchase | null>(null);
  const sending = useRef<AbortController | null>(null);

  // A user who has left this page stays where they are. A layout effect aborts in the commit that removes the page.
  useLayoutEffect(() => () => sending.current?.abort(), []);

  const buy = useMutation({
    mutationFn: async ({ pack, key, signal }: Purchase & { signal: AbortSignal }) => {
      const { url } = unwrap(
        await api.POST(checkoutSessions[pack], { params: { header: { 'Idempotency-Key': key } }, signal }),
      );
      pending.current = null;
      if (!url) throw new Error('The response has no payment URL');
      void queryClient.invalidateQueries({ queryKey: queryKeys.checkouts });
      if (!signal.aborted) await leavePage(url);
    },
    onError: (error, { signal }) => {
      if (error instanceof ApiError && error.status < 500) pending.current = null;
      if (!signal.aborted) notifyError(t('Failed to redirect to payment, please try again later'));
    },
    onSettled: () => {
      sending.current = null;
    },
  });

  function start(pack: PackNumber) {
    // The second click of a double click arrives before the next render.
    if (sending.current) return;
    sending.current = new AbortController();
    if (pending.current?.pack !== pack) pending.current = { pack, key: newId() };
    buy.mutate({ ...pending.current, signal: sending.current.signal });
  }

  return { start, isPending: buy.isPending };
}
