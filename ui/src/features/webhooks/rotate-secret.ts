import { useMutation, useQueryClient } from '@tanstack/react-query';
import { api, unwrap } from '@/lib/api-client';
import { notifyError } from '@/lib/notify';
import { webhooksKey } from '@/lib/query-keys';
import { t } from '@/lib/translate';
import { webhookTexts } from './texts';

export function useRotateSecret(webhookId: string) {
  const queryClient = useQueryClient();
  return useMutation({
    mutationFn: async () =>
      unwrap(await api.POST('/api/webhooks/{webhookId}/secret', { params: { path: { webhookId } } })),
    onSuccess: () => void queryClient.invalidateQueries({ queryKey: webhooksKey, exact: true }),
    onError: () => notifyError(t(webhookTexts.notRotated)),
    // The secret is shown once and never cached.
    gcTime: 0,
  });
}
