import type { ImageSize } from './image-size';

export function isTooBig({ x, y }: ImageSize, maxDimension: number): boolean {
  return x > maxDimension || y > maxDimension;
}

export function tooBigText(maxDimension: number): string {
  return `Image dimensions too big (Max ${maxDimension}x${maxDimension})`;
}
