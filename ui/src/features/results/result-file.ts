import type { QueryClient } from '@tanstack/react-query';
import { type Background, type Look, plainLook } from '@/features/finish/look';
import type { TouchUp } from '@/features/finish/use-finish';
import { api, type RenderPath, unwrap } from '@/lib/api-client';
import type { Result } from '@/lib/api-types';
import type { DownloadFormat } from '@/lib/download';
import { UserError } from '@/lib/failure-text';
import { loadWithRetry } from '@/lib/load-with-retry';
import { t } from '@/lib/translate';
import { fetchPicture } from './fetch-picture';

const QUALITY = 90;
const loadRenderFile = () => import('@/features/finish/render-file');

/** Returns a result as a file. The API makes every file but the plain PNG, which is the stored one, byte for byte. */
export async function resultFile(
  queryClient: QueryClient,
  result: Result,
  look: Look,
  strokes: TouchUp['strokes'],
  format: DownloadFormat,
  signal?: AbortSignal,
): Promise<Blob> {
  const { imageId: resultId, url } = result;
  const isPlain = !look.background && !look.shadow && !look.crop && strokes.length === 0;
  if (!isPlain) {
    const path: RenderPath = `/api/results/${encodeURIComponent(resultId)}/render`;
    return rendered(path, result, look, strokes, format, signal);
  }
  if (format === 'png') return fetchPicture(queryClient, url);
  const answer = await api.GET('/api/results/{resultId}/file', {
    params: { path: { resultId }, query: { format, quality: QUALITY } },
    parseAs: 'blob',
  });
  return unwrap<Blob>(answer);
}

/**
 * The same for a result without an owner: its signed URL permits rendering it. A result that arrived as a picture has
 * no such URL.
 */
export async function sharedResultFile(
  queryClient: QueryClient,
  result: Size & Pick<Result, 'url'>,
  background: Background | null,
  format: DownloadFormat,
): Promise<Blob> {
  if (!background && format === 'png') return fetchPicture(queryClient, result.url);
  if (result.url.startsWith('blob:')) {
    throw new UserError(t('This result can only be saved as a PNG with a transparent background.'));
  }
  const { pathname, search } = new URL(result.url, window.location.origin);
  const path = `${pathname}/render${search}` as RenderPath;
  return rendered(path, result, { ...plainLook, background }, [], format);
}

type Size = Pick<Result, 'width' | 'height'>;

async function rendered(
  path: RenderPath,
  { width, height }: Size,
  look: Look,
  strokes: TouchUp['strokes'],
  format: DownloadFormat,
  signal?: AbortSignal,
): Promise<Blob> {
  const { renderFile } = await loadWithRetry(loadRenderFile);
  return renderFile(path, { x: width, y: height }, look, strokes, format, signal);
}
