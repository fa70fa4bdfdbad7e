import { fetchFile } from './api-client';

export type DownloadFormat = 'png' | 'jpg' | 'webp';

const QUALITY = 0.9;
const mime = { png: 'image/png', jpg: 'image/jpeg', webp: 'image/webp' };

/** What lies behind a picture that is transparent in places; null leaves it transparent. */
export type Backdrop = { color: string } | { picture: Blob; address: string } | null;

export async function downloadImage(
  url: string,
  format: DownloadFormat,
  backdrop: Backdrop = null,
): Promise<void> {
  const original = await fetchFile(url);
  // A PNG is handed over as it is: a canvas would drop its colour profile and has a size limit.
  const isAsWanted = !backdrop && format === 'png' && original.type === mime.png;
  const blob = isAsWanted ? original : await convert(original, format, backdrop);
  saveFile(blob, `downloaded_image.${format}`);
}

async function convert(original: Blob, format: DownloadFormat, backdrop: Backdrop): Promise<Blob> {
  const bitmap = await createImageBitmap(original);
  const canvas = document.createElement('canvas');
  canvas.width = bitmap.width;
  canvas.height = bitmap.height;
  const context = canvas.getContext('2d');
  if (!context) throw new Error('This browser gave no canvas to draw on');
  // JPG knows no transparency; without a colour the cut-out would lie on black.
  await paint(context, backdrop ?? (format === 'jpg' ? { color: '#fff' } : null));
  context.drawImage(bitmap, 0, 0);
  bitmap.close();
  const blob = await new Promise<Blob | null>((resolve) => canvas.toBlob(resolve, mime[format], QUALITY));
  // A browser that cannot write a format answers with a PNG; that must not get a wrong name.
  if (!blob || blob.type !== mime[format])
    throw new Error(`This browser cannot write ${format.toUpperCase()}`);
  return blob;
}

/** Fills the canvas; a picture covers all of it, as `background-size: cover` does in the preview. */
async function paint(context: CanvasRenderingContext2D, backdrop: Backdrop) {
  if (!backdrop) return;
  const { width, height } = context.canvas;
  if ('color' in backdrop) {
    context.fillStyle = backdrop.color;
    context.fillRect(0, 0, width, height);
    return;
  }
  const picture = await createImageBitmap(backdrop.picture);
  const scale = Math.max(width / picture.width, height / picture.height);
  const [wide, high] = [picture.width * scale, picture.height * scale];
  context.drawImage(picture, (width - wide) / 2, (height - high) / 2, wide, high);
  picture.close();
}

export function saveFile(blob: Blob, name: string) {
  const href = URL.createObjectURL(blob);
  const link = document.createElement('a');
  link.href = href;
  link.download = name;
  link.click();
  // The download starts after the click returns; Safari needs the address a little longer.
  setTimeout(() => URL.revokeObjectURL(href), 60_000);
}
