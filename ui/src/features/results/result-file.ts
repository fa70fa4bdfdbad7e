import type { QueryClient } from '@tanstack/react-query';
import type { Look } from '@/features/finish/look';
import type { TouchUp } from '@/features/finish/use-finish';
import { api, unwrap } from '@/lib/api-client';
import type { Result } from '@/lib/api-types';
import type { DownloadFormat } from '@/lib/download';
import { loadWithRetry } from '@/lib/load-with-retry';
import { fetchPicture } from './fetch-picture';

const QUALITY = 90;

/** Returns a result as a file. The API makes every file but the plain PNG, which is the stored one, byte for byte. */
export async function resultFile(
  queryClient: QueryClient,
  { imageId: resultId, url, width, height }: Result,
  look: Look,
  strokes: TouchUp['strokes'],
  format: DownloadFormat,
): Promise<Blob> {
  const isPlain = !look.background && !look.shadow && !look.crop && strokes.length === 0;
  if (!isPlain) {
    const { renderFile } = await loadWithRetry(() => import('@/features/finish/render-file'));
    return renderFile(resultId, { x: width, y: height }, look, strokes, format);
  }
  if (format === 'png') return fetchPicture(queryClient, url);
  const answer = await api.GET('/api/results/{resultId}/file', {
    params: { path: { resultId }, query: { format, quality: QUALITY } },
    parseAs: 'blob',
  });
  return unwrap<Blob>(answer);
}
