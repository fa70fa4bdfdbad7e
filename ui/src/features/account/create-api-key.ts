import { useMutation, useQueryClient } from '@tanstack/react-query';
import { api, unwrap } from '@/lib/api-client';
import { apiKeysKey } from '@/lib/query-keys';

export function useCreateApiKey() {
  const queryClient = useQueryClient();
  return useMutation({
    mutationFn: async (name: string) => unwrap(await api.POST('/api/keys', { body: { name } })),
    // A key whose answer was lost exists, too.
    onSettled: () => void queryClient.invalidateQueries({ queryKey: apiKeysKey }),
    // The full key is shown once and never cached.
    gcTime: 0,
  });
}
