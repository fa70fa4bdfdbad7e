import { useMutation, useQueryClient } from '@tanstack/react-query';
import { api, unwrap } from '@/lib/api-client';
import type { WebhookRequest } from '@/lib/api-types';
import { webhooksKey } from '@/lib/query-keys';

export function useCreateWebhook() {
  const queryClient = useQueryClient();
  return useMutation({
    mutationFn: async (body: WebhookRequest) => unwrap(await api.POST('/api/webhooks', { body })),
    onSuccess: () => void queryClient.invalidateQueries({ queryKey: webhooksKey, exact: true }),
    // The secret is shown once and never cached.
    gcTime: 0,
  });
}
