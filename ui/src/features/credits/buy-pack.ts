import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useEffect, useRef } from 'react';
import { ApiError, api, unwrap } from '@/lib/api-client';
import { leavePage } from '@/lib/leave-page';
import { newId } from '@/lib/new-id';
import { notifyError } from '@/lib/notify';
import { queryKeys } from '@/lib/query-keys';

const checkoutSessions = {
  1: '/api/payments/create-checkout-session-1',
  2: '/api/payments/create-checkout-session-2',
  3: '/api/payments/create-checkout-session-3',
} as const;

export type PackNumber = keyof typeof checkoutSessions;

type Purchase = { pack: PackNumber; key: string };

/** From the click on a pack to the payment provider's page. */
export function useBuyPack() {
  const queryClient = useQueryClient();
  // One key a click. It is kept when the connection broke: the order may exist, and a repeat must find it.
  const open = useRef<Purchase | null>(null);
  const sending = useRef<AbortController | null>(null);

  // Whoever has gone elsewhere in the page meanwhile is not pulled away from there.
  useEffect(() => () => sending.current?.abort(), []);

  const buy = useMutation({
    mutationFn: async ({ pack, key, signal }: Purchase & { signal: AbortSignal }) => {
      const { url } = unwrap(
        await api.POST(checkoutSessions[pack], { params: { header: { 'Idempotency-Key': key } }, signal }),
      );
      open.current = null;
      if (!url) throw new Error('The answer names no page to pay on');
      void queryClient.invalidateQueries({ queryKey: queryKeys.checkouts });
      if (!signal.aborted) await leavePage(url);
    },
    onError: (error, { signal }) => {
      if (error instanceof ApiError) open.current = null;
      if (!signal.aborted) notifyError('Failed to redirect to payment, please try again later');
    },
    onSettled: () => {
      sending.current = null;
    },
  });

  function start(pack: PackNumber) {
    // The second click of a double click comes before the first has changed anything on the screen.
    if (sending.current) return;
    sending.current = new AbortController();
    if (open.current?.pack !== pack) open.current = { pack, key: newId() };
    buy.mutate({ ...open.current, signal: sending.current.signal });
  }

  return { start, isPending: buy.isPending };
}
