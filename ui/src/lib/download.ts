export type DownloadFormat = 'png' | 'jpg' | 'webp';

const QUALITY = 0.9;
const mime = { png: 'image/png', jpg: 'image/jpeg', webp: 'image/webp' };

/** What fills the transparent parts of a picture; null keeps them transparent. */
export type Backdrop = { color: string } | { picture: Blob } | null;

/** Copies a picture as a PNG, the one format that every clipboard takes. Call it in a click. */
export async function copyPicture(png: Promise<Blob>): Promise<void> {
  // Safari wants the promise itself: after a pause, the click no longer counts.
  await navigator.clipboard.write([new ClipboardItem({ [mime.png]: png })]);
}

/** Converts a picture in the browser: for visitors, whose results the API does not render. */
export async function convertPicture(
  original: Blob,
  format: DownloadFormat,
  backdrop: Backdrop,
): Promise<Blob> {
  // Passes a PNG through: a canvas would drop the color profile, and its size is limited.
  if (!backdrop && format === 'png' && original.type === mime.png) return original;
  const bitmap = await createImageBitmap(original);
  const canvas = document.createElement('canvas');
  canvas.width = bitmap.width;
  canvas.height = bitmap.height;
  const context = canvas.getContext('2d');
  if (!context) throw new Error('This browser provides no 2D canvas');
  // JPG has no transparency; without a color the background would be black.
  await paintBackdrop(context, backdrop ?? (format === 'jpg' ? { color: '#fff' } : null));
  context.drawImage(bitmap, 0, 0);
  bitmap.close();
  const blob = await new Promise<Blob | null>((resolve) => canvas.toBlob(resolve, mime[format], QUALITY));
  // A browser that cannot encode a format returns a PNG, which must not get the wrong extension.
  if (!blob || blob.type !== mime[format])
    throw new Error(`This browser cannot encode ${format.toUpperCase()}`);
  return blob;
}

/** Fills the canvas. A picture covers it, like `background-size: cover` in the preview. */
async function paintBackdrop(context: CanvasRenderingContext2D, backdrop: Backdrop) {
  if (!backdrop) return;
  const { width, height } = context.canvas;
  if ('color' in backdrop) {
    context.fillStyle = backdrop.color;
    context.fillRect(0, 0, width, height);
    return;
  }
  const picture = await createImageBitmap(backdrop.picture);
  const scale = Math.max(width / picture.width, height / picture.height);
  const [drawnWidth, drawnHeight] = [picture.width * scale, picture.height * scale];
  context.drawImage(picture, (width - drawnWidth) / 2, (height - drawnHeight) / 2, drawnWidth, drawnHeight);
  picture.close();
}

export function saveFile(blob: Blob, name: string) {
  const href = URL.createObjectURL(blob);
  const link = document.createElement('a');
  link.href = href;
  link.download = name;
  link.click();
  // The download starts after the click returns; Safari needs the URL a little longer.
  setTimeout(() => URL.revokeObjectURL(href), 60_000);
}
