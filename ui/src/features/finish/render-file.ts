import type { Stroke } from '@/features/mask/marks';
import { type RenderPath, sendForm } from '@/lib/api-client';
import type { DownloadFormat } from '@/lib/download';
import type { ImageSize } from '@/lib/image-size';
import type { Background, Look } from './look';
import { touchUpFile } from './touch-up-file';

const QUALITY = 90;

/** Has the API render a finished result in full size. */
export async function renderFile(
  path: RenderPath,
  size: ImageSize,
  { background, shadow, crop }: Look,
  strokes: Stroke[],
  format: DownloadFormat,
  signal?: AbortSignal,
): Promise<Blob> {
  const options = { format, quality: QUALITY, background: optionOf(background), shadow, crop };
  const fields: Record<string, string | File> = { options: JSON.stringify(options) };
  if (strokes.length > 0) fields.touchUp = await touchUpFile(strokes, size);
  if (background && 'picture' in background) fields.background = background.picture;
  const { body } = await sendForm(path, fields, { signal });
  // The clipboard interprets the file by its type.
  return new Blob([body], { type: { png: 'image/png', jpg: 'image/jpeg', webp: 'image/webp' }[format] });
}

function optionOf(background: Background | null) {
  return background && 'picture' in background ? { picture: true } : background;
}
