import { useMutation, useQueryClient } from '@tanstack/react-query';
import type { Tool } from '@/features/catalog/tool';
import { api, unwrap } from '@/lib/api-client';
import type { Result } from '@/lib/api-types';
import { notifyError } from '@/lib/notify';
import { t } from '@/lib/translate';

export function useDeleteResult(tool: Tool, imageId: string, onDeleted?: () => void) {
  const queryClient = useQueryClient();
  return useMutation({
    mutationFn: async (resultId: string) =>
      unwrap(await api.DELETE(tool.resultsPath, { params: { path: { imageId: resultId } } })),
    onSuccess: (_, resultId) => {
      queryClient.setQueryData<Result[]>(tool.resultsKey(imageId), (old) =>
        old?.filter((result) => result.imageId !== resultId),
      );
      onDeleted?.();
    },
    onError: () => notifyError(t('Failed to delete image')),
  });
}
