import type { ImageSize } from '@/lib/image-size';
import { readableCanvas } from '@/lib/readable-canvas';
import { t } from '@/lib/translate';
import type { Area } from './marks';

/** The message is shown to the user. */
class UnusableMask extends Error {
  override name = 'UnusableMask';
}

/** Masks of another size are scaled, but only if the aspect ratio matches this closely. */
const ASPECT_TOLERANCE = 0.01;
/** Rows read at a time. */
const BAND = 256;

/**
 * Reads the area that a picture marks: its opaque pixels or, if it has no transparency, its bright ones. This accepts
 * both exported masks and the black and white masks of other programs.
 */
export async function readMask(file: Blob, image: ImageSize): Promise<Area> {
  const picture = await createImageBitmap(file).catch(() => {
    throw new UnusableMask(t('We can’t read this file as an image. Choose a PNG.'));
  });
  try {
    const ratio = picture.width / picture.height / (image.x / image.y);
    if (Math.abs(ratio - 1) > ASPECT_TOLERANCE) {
      throw new UnusableMask(
        t('This mask is {width} × {height} px and does not fit the image of {x} × {y} px.', {
          width: picture.width,
          height: picture.height,
          x: image.x,
          y: image.y,
        }),
      );
    }
    const spans = readSpans(picture, image);
    if (spans.length === 0) throw new UnusableMask(t('This mask marks nothing.'));
    return { kind: 'area', spans };
  } finally {
    picture.close();
  }
}

function readSpans(picture: ImageBitmap, image: ImageSize): number[] {
  const isOpaque = hasNoTransparency(picture);
  const spans: number[] = [];
  const { context } = readableCanvas(image.x, Math.min(BAND, image.y));
  for (let start = 0; start < image.y; start += BAND) {
    const rows = Math.min(BAND, image.y - start);
    context.clearRect(0, 0, image.x, BAND);
    context.drawImage(picture, 0, -start, image.x, image.y);
    const { data } = context.getImageData(0, 0, image.x, rows);
    for (let y = 0; y < rows; y += 1) {
      let from = -1;
      for (let x = 0; x <= image.x; x += 1) {
        const isMarked = x < image.x && isMarkedAt(data, (y * image.x + x) * 4, isOpaque);
        if (isMarked && from < 0) from = x;
        if (!isMarked && from >= 0) {
          spans.push(start + y, from, x);
          from = -1;
        }
      }
    }
  }
  return spans;
}

function isMarkedAt(data: Uint8ClampedArray, at: number, isOpaque: boolean): boolean {
  if (!isOpaque) return (data[at + 3] ?? 0) >= 128;
  return 0.299 * (data[at] ?? 0) + 0.587 * (data[at + 1] ?? 0) + 0.114 * (data[at + 2] ?? 0) >= 128;
}

function hasNoTransparency(picture: ImageBitmap): boolean {
  const { context } = readableCanvas(picture.width, Math.min(BAND, picture.height));
  for (let start = 0; start < picture.height; start += BAND) {
    const rows = Math.min(BAND, picture.height - start);
    context.clearRect(0, 0, picture.width, BAND);
    context.drawImage(picture, 0, -start);
    const { data } = context.getImageData(0, 0, picture.width, rows);
    for (let at = 3; at < data.length; at += 4) if (data[at] !== 255) return false;
  }
  return true;
}
