import { api, unwrap } from '@/lib/api-client';
import type { Image } from '@/lib/api-types';
import type { Area, Clicks } from './marks';

const loadReadMask = () => import('./read-mask');

/** Asks the API for the area that clicks select. */
export async function selectArea(image: Image, clicks: Clicks, signal: AbortSignal): Promise<Area> {
  const answer = await api.POST('/api/images/{imageId}/select', {
    params: { path: { imageId: image.id } },
    body: clicks,
    parseAs: 'blob',
    signal,
  });
  const mask = unwrap<Blob>(answer);
  const { readMask } = await loadReadMask();
  return readMask(mask, image);
}
