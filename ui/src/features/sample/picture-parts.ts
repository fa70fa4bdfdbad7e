import { readableCanvas } from '@/lib/readable-canvas';
import type { Part, Reduced } from './detailed-parts';

/** Maximum side of the reduced copy. */
const REDUCED_SIDE = 480;

/** Decodes a picture. The browser applies its orientation. */
export async function decode(url: string): Promise<HTMLImageElement> {
  const image = new Image();
  image.src = url;
  await image.decode();
  return image;
}

/** Returns a part of a picture as a PNG file. */
export async function cut(image: HTMLImageElement, { x, y, width, height }: Part): Promise<File> {
  const { canvas, context } = readableCanvas(width, height);
  context.drawImage(image, x, y, width, height, 0, 0, width, height);
  const png = await new Promise<Blob | null>((resolve) => canvas.toBlob(resolve, 'image/png'));
  if (!png) throw new Error('This browser cannot encode PNG');
  return new File([png], 'detail.png', { type: 'image/png' });
}

export function reduce(image: HTMLImageElement): Reduced {
  const { naturalWidth, naturalHeight } = image;
  const scale = Math.min(1, REDUCED_SIDE / Math.max(naturalWidth, naturalHeight));
  const width = Math.max(1, Math.round(naturalWidth * scale));
  const height = Math.max(1, Math.round(naturalHeight * scale));
  const { context } = readableCanvas(width, height);
  context.drawImage(image, 0, 0, width, height);
  const { data } = context.getImageData(0, 0, width, height);
  const luma = new Uint8ClampedArray(width * height);
  // The weights of Rec. 601.
  for (let at = 0; at < luma.length; at += 1)
    luma[at] =
      0.299 * (data[4 * at] ?? 0) + 0.587 * (data[4 * at + 1] ?? 0) + 0.114 * (data[4 * at + 2] ?? 0);
  return { luma, width, height, scale };
}
