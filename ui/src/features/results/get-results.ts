import { queryOptions, useQuery } from '@tanstack/react-query';
import type { Tool } from '@/features/catalog/tool';
import { api, unwrap } from '@/lib/api-client';
import type { Result } from '@/lib/api-types';
import { renewPictures } from '@/lib/picture-urls';

export function resultsQuery(tool: Tool, imageId: string) {
  return queryOptions({
    queryKey: tool.resultsKey(imageId),
    queryFn: async ({ signal }): Promise<Result[]> => {
      const results = unwrap(await api.GET(tool.resultsPath, { params: { path: { imageId } }, signal }));
      return results.toSorted((a, b) => a.createdAt.localeCompare(b.createdAt));
    },
    ...renewPictures,
    meta: { failure: tool.texts.listFailed, ignoreNotFound: true },
  });
}

export function useResults(tool: Tool, imageId: string) {
  return useQuery(resultsQuery(tool, imageId));
}
