import { useMutation, useQueryClient } from '@tanstack/react-query';
import { api, unwrap } from '@/lib/api-client';
import { failureText } from '@/lib/failure-text';
import { notifyError } from '@/lib/notify';
import { deliveriesKey } from '@/lib/query-keys';
import { t } from '@/lib/translate';
import { webhookTexts } from './texts';

/** Sends a test event. */
export function useSendTest(webhookId: string) {
  const queryClient = useQueryClient();
  return useMutation({
    mutationFn: async () =>
      unwrap(await api.POST('/api/webhooks/{webhookId}/test', { params: { path: { webhookId } } })),
    onSuccess: () => void queryClient.invalidateQueries({ queryKey: deliveriesKey(webhookId) }),
    onError: (error) => notifyError(failureText(error) || t(webhookTexts.notSent)),
  });
}
