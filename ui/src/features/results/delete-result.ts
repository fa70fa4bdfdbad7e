import { useMutation, useQueryClient } from '@tanstack/react-query';
import type { Tool } from '@/features/catalog/tool';
import { api, unwrapDeletion } from '@/lib/api-client';
import type { Result } from '@/lib/api-types';
import { notifyError } from '@/lib/notify';
import { t } from '@/lib/translate';

export function useDeleteResult(tool: Tool, imageId: string, onDeleted?: () => void) {
  const queryClient = useQueryClient();
  return useMutation({
    mutationFn: async (resultId: string) =>
      unwrapDeletion(await api.DELETE(tool.resultsPath, { params: { path: { imageId: resultId } } })),
    onSuccess: (_, resultId) => {
      const queryKey = tool.resultsKey(imageId);
      const isListFetching = queryClient.isFetching({ queryKey }) > 0;
      queryClient.setQueryData<Result[]>(queryKey, (old) =>
        old?.filter((result) => result.imageId !== resultId),
      );
      // The response on its way may predate the deletion and would bring the result back.
      if (isListFetching) void queryClient.invalidateQueries({ queryKey });
      onDeleted?.();
    },
    onError: () => notifyError(t('Failed to delete image')),
  });
}
