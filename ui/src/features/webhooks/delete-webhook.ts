import { useMutation, useQueryClient } from '@tanstack/react-query';
import { api, isProblem, unwrap } from '@/lib/api-client';
import type { Webhook } from '@/lib/api-types';
import { notifyError } from '@/lib/notify';
import { webhooksKey } from '@/lib/query-keys';
import { t } from '@/lib/translate';
import { webhookTexts } from './texts';

export function useDeleteWebhook(onDeleted: (webhookId: string) => void) {
  const queryClient = useQueryClient();
  return useMutation({
    mutationFn: async (webhookId: string) => {
      const answer = await api.DELETE('/api/webhooks/{webhookId}', { params: { path: { webhookId } } });
      try {
        unwrap(answer);
      } catch (error) {
        // Already deleted, perhaps in another tab.
        if (!isProblem(error, 404)) throw error;
      }
    },
    onSuccess: (_, webhookId) => {
      queryClient.setQueryData<Webhook[]>(webhooksKey, (old) => old?.filter(({ id }) => id !== webhookId));
      onDeleted(webhookId);
    },
    onError: () => notifyError(t(webhookTexts.notDeleted)),
  });
}
