import { useMutation, useQueryClient } from '@tanstack/react-query';
import { api, unwrapDeletion } from '@/lib/api-client';
import type { ApiKey } from '@/lib/api-types';
import { notifyError } from '@/lib/notify';
import { apiKeysKey } from '@/lib/query-keys';
import { t } from '@/lib/translate';
import { accountTexts } from './texts';

export function useRevokeApiKey(onRevoked: (keyId: string) => void) {
  const queryClient = useQueryClient();
  return useMutation({
    mutationFn: async (keyId: string) =>
      unwrapDeletion(await api.DELETE('/api/keys/{keyId}', { params: { path: { keyId } } })),
    onSuccess: (_, keyId) => {
      queryClient.setQueryData<ApiKey[]>(apiKeysKey, (old) => old?.filter(({ id }) => id !== keyId));
      onRevoked(keyId);
    },
    onError: () => notifyError(t(accountTexts.keyNotRevoked)),
  });
}
