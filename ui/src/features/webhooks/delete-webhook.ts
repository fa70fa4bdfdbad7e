import { useMutation, useQueryClient } from '@tanstack/react-query';
import { api, unwrapDeletion } from '@/lib/api-client';
import type { Webhook } from '@/lib/api-types';
import { notifyError } from '@/lib/notify';
import { webhooksKey } from '@/lib/query-keys';
import { t } from '@/lib/translate';
import { webhookTexts } from './texts';

export function useDeleteWebhook(onDeleted: (webhookId: string) => void) {
  const queryClient = useQueryClient();
  return useMutation({
    mutationFn: async (webhookId: string) =>
      unwrapDeletion(await api.DELETE('/api/webhooks/{webhookId}', { params: { path: { webhookId } } })),
    onSuccess: (_, webhookId) => {
      queryClient.setQueryData<Webhook[]>(webhooksKey, (old) => old?.filter(({ id }) => id !== webhookId));
      onDeleted(webhookId);
    },
    onError: () => notifyError(t(webhookTexts.notDeleted)),
  });
}
