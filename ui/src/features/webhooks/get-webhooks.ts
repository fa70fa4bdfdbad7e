import { queryOptions, useQuery } from '@tanstack/react-query';
import { api, unwrap } from '@/lib/api-client';
import { cacheTime } from '@/lib/query-client';
import { webhooksKey } from '@/lib/query-keys';
import { webhookTexts } from './texts';

const webhooksQuery = queryOptions({
  queryKey: webhooksKey,
  queryFn: async ({ signal }) => unwrap(await api.GET('/api/webhooks', { signal })).webhooks,
  gcTime: cacheTime.account,
  meta: { failure: webhookTexts.loadFailedToast },
});

export function useWebhooks() {
  return useQuery(webhooksQuery);
}
