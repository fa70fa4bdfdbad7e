import { useState } from 'react';
import type { Image } from '@/lib/api-types';

/**
 * Returns a key that stays while one image is made from the other, so that zoom, focus and a run that is being sent
 * survive the step from a picture to the fixed one.
 */
export function useSeries(image: Image): string {
  const [series, setSeries] = useState({ key: image.id, image });
  if (series.image.id === image.id) return series.key;
  const isSameSize = image.x === series.image.x && image.y === series.image.y;
  const isStep = isMadeFrom(image, series.image) || isMadeFrom(series.image, image);
  const key = isStep && isSameSize ? series.key : image.id;
  setSeries({ key, image });
  return key;
}

const isMadeFrom = ({ madeFrom }: Image, source: Image) =>
  madeFrom?.tool === 'magic-fix' && madeFrom.imageId === source.id;
