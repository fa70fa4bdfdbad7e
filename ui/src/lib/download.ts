import { fetchFile } from './api-client';

export type DownloadFormat = 'png' | 'jpg' | 'webp';

const QUALITY = 0.9;
const mime = { png: 'image/png', jpg: 'image/jpeg', webp: 'image/webp' };

export async function downloadImage(url: string, format: DownloadFormat): Promise<void> {
  const original = await fetchFile(url);
  // A PNG is handed over as it is: a canvas would drop its colour profile and has a size limit.
  const blob = format === 'png' && original.type === mime.png ? original : await convert(original, format);
  saveFile(blob, `downloaded_image.${format}`);
}

async function convert(original: Blob, format: DownloadFormat): Promise<Blob> {
  const bitmap = await createImageBitmap(original);
  const canvas = document.createElement('canvas');
  canvas.width = bitmap.width;
  canvas.height = bitmap.height;
  const context = canvas.getContext('2d');
  if (!context) throw new Error('This browser gave no canvas to draw on');
  if (format === 'jpg') {
    // JPG knows no transparency; without this the cut-out would lie on black.
    context.fillStyle = '#fff';
    context.fillRect(0, 0, canvas.width, canvas.height);
  }
  context.drawImage(bitmap, 0, 0);
  bitmap.close();
  const blob = await new Promise<Blob | null>((resolve) => canvas.toBlob(resolve, mime[format], QUALITY));
  // A browser that cannot write a format answers with a PNG; that must not get a wrong name.
  if (!blob || blob.type !== mime[format])
    throw new Error(`This browser cannot write ${format.toUpperCase()}`);
  return blob;
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
