import { useEffect, useState } from 'react';
import { t } from '@/lib/translate';
import { api } from './api-client';
import { useConfig } from './env';
import { formatBytes } from './format';
import { type ImageSize, readImageSize } from './image-size';
import { isTooBig, tooBigText } from './max-dimension';

export type ChosenImage = {
  file: File;
  /** Object URL of the file. */
  url: string;
  size: ImageSize | null;
  /** Why the file cannot be used; null while it is being read, and if it can be used. */
  problem: string | null;
};

/** One chosen file, measured and checked against the installation's limits. */
export function useChosenImage(maxDimension: number) {
  const { limits } = useConfig();
  const [chosen, setChosen] = useState<ChosenImage | null>(null);
  const url = chosen?.url;

  useEffect(() => () => void (url && URL.revokeObjectURL(url)), [url]);

  async function choose(file: File) {
    if (!file.type.startsWith('image/')) return;
    const url = URL.createObjectURL(file);
    const update = (change: Partial<ChosenImage>) =>
      // A slow file must not overwrite a later choice.
      setChosen((current) => (current?.url === url ? { ...current, ...change } : current));

    setChosen({ file, url, size: null, problem: null });
    update(await checkImageFile(file, url, maxDimension, limits.maxUploadBytes));
  }

  return { chosen, choose, clear: () => setChosen(null) };
}

// Some systems use old names for JPEG.
const ACCEPTED = new Set(['image/png', 'image/jpeg', 'image/jpg', 'image/pjpeg', 'image/webp']);

/** Measures a file and explains why it cannot be used, if so. Reports oversize files to the operator. */
export async function checkImageFile(
  file: File,
  url: string,
  maxDimension: number,
  maxBytes: number,
): Promise<Pick<ChosenImage, 'size' | 'problem'>> {
  const unreadable = {
    size: null,
    problem: t('We can’t read this file as an image. Choose a JPG, PNG or WebP file.'),
  };
  // Browsers decode more formats than the server, which would refuse them after the upload.
  if (!ACCEPTED.has(file.type)) return unreadable;
  try {
    const size = await readImageSize(url);
    if (isTooBig(size, maxDimension)) {
      reportOversize(size);
      return { size, problem: tooBigText(maxDimension) };
    }
    if (file.size <= maxBytes) return { size, problem: null };
    const [bytes, limit] = [formatBytes(file.size), formatBytes(maxBytes)];
    return { size, problem: t('This file is {bytes}. You can upload up to {limit}.', { bytes, limit }) };
  } catch {
    return unreadable;
  }
}

/** Tells the operator that users want larger images. The response is ignored. */
function reportOversize({ x, y }: ImageSize) {
  api
    .GET('/api/free/upload', { params: { query: { x: String(x), y: String(y), url: window.location.href } } })
    .catch(() => {});
}
