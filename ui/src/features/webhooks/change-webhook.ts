import { useMutation, useQueryClient } from '@tanstack/react-query';
import { api, unwrap } from '@/lib/api-client';
import type { Webhook, WebhookRequest } from '@/lib/api-types';
import { webhooksKey } from '@/lib/query-keys';

export type WebhookChange = Partial<WebhookRequest> & { enabled?: boolean };

export function useChangeWebhook(webhookId: string) {
  const queryClient = useQueryClient();
  return useMutation({
    mutationFn: async (body: WebhookChange) =>
      unwrap(await api.PATCH('/api/webhooks/{webhookId}', { params: { path: { webhookId } }, body })),
    onSuccess: (changed) => {
      queryClient.setQueryData<Webhook[]>(webhooksKey, (old) =>
        old?.map((webhook) => (webhook.id === webhookId ? changed : webhook)),
      );
      // Turning it off ends what waits.
      void queryClient.invalidateQueries({ queryKey: webhooksKey });
    },
  });
}
