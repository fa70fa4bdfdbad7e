import { t } from '@/lib/translate';
import type { ImageSize } from './image-size';

export function isTooBig({ x, y }: ImageSize, maxDimension: number): boolean {
  return x > maxDimension || y > maxDimension;
}

export function tooBigText(maxDimension: number): string {
  return t('Image dimensions too big (Max {side}x{side})', { side: maxDimension });
}
