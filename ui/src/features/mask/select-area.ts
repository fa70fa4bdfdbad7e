import { api, unwrap } from '@/lib/api-client';
import { loadWithRetry } from '@/lib/load-with-retry';
import type { EditedPicture } from './edited-picture';
import type { Area, Clicks } from './marks';

const loadReadMask = () => import('./read-mask');

/** Asks the API for the area that clicks select. */
export async function selectArea(picture: EditedPicture, clicks: Clicks, signal: AbortSignal): Promise<Area> {
  const imageId = await picture.imageId(signal);
  const answer = await api.POST('/api/images/{imageId}/select', {
    params: { path: { imageId } },
    body: clicks,
    parseAs: 'blob',
    signal,
  });
  const mask = unwrap<Blob>(answer);
  const { readMask } = await loadWithRetry(loadReadMask);
  return readMask(mask, picture);
}
