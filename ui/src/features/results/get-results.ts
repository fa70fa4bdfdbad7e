import { useQuery } from '@tanstack/react-query';
import type { Tool } from '@/features/catalog/tool';
import { api, unwrap } from '@/lib/api-client';
import type { ResultItem } from '@/lib/api-types';

export function useResults(tool: Tool, imageId: string) {
  return useQuery({
    queryKey: tool.resultsKey(imageId),
    queryFn: async ({ signal }): Promise<ResultItem[]> => {
      const results = unwrap(await api.GET(tool.resultsPath, { params: { path: { imageId } }, signal }));
      return results
        .toSorted((a, b) => a.createdAt.localeCompare(b.createdAt))
        .map((result) => ({ ...result, isNew: false }));
    },
    meta: { failure: tool.texts.listFailed, ignoreNotFound: true },
  });
}
