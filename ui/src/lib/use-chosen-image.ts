import { useEffect, useState } from 'react';
import { api } from './api-client';
import { useConfig } from './env';
import { formatBytes } from './format';
import { type ImageSize, readImageSize } from './image-size';
import { isTooBig, tooBigText } from './max-dimension';

export type ChosenImage = {
  file: File;
  address: string;
  size: ImageSize | null;
  /** Why this file cannot be used; null while it is read and when it can. */
  problem: string | null;
};

/** One chosen file: read, measured and checked against the installation's limits. */
export function useChosenImage(maxDimension: number) {
  const { limits } = useConfig();
  const [chosen, setChosen] = useState<ChosenImage | null>(null);
  const address = chosen?.address;

  // An object URL lives outside React and must be given back.
  useEffect(() => () => void (address && URL.revokeObjectURL(address)), [address]);

  async function choose(file: File) {
    if (!file.type.startsWith('image/')) return;
    const address = URL.createObjectURL(file);
    const update = (change: Partial<ChosenImage>) =>
      // Only while it is still the chosen one: a slow file must not overwrite a later choice.
      setChosen((current) => (current?.address === address ? { ...current, ...change } : current));

    setChosen({ file, address, size: null, problem: null });
    update(await examine(file, address, maxDimension, limits.maxUploadBytes));
  }

  return { chosen, choose, clear: () => setChosen(null) };
}

// Some systems know JPG by an older name.
const READABLE = new Set(['image/png', 'image/jpeg', 'image/jpg', 'image/pjpeg', 'image/webp']);

/** How large a picture is, and why it cannot be used, if it cannot. */
export async function examine(
  file: File,
  address: string,
  maxDimension: number,
  maxBytes: number,
): Promise<Pick<ChosenImage, 'size' | 'problem'>> {
  const unreadable = {
    size: null,
    problem: 'This file cannot be read as an image. Choose a JPG, PNG or WebP file.',
  };
  // A browser shows more kinds than the server reads; those would be refused after the whole upload.
  if (!READABLE.has(file.type)) return unreadable;
  try {
    const size = await readImageSize(address);
    if (isTooBig(size, maxDimension)) {
      reportOversize(size);
      return { size, problem: tooBigText(maxDimension) };
    }
    if (file.size <= maxBytes) return { size, problem: null };
    const [has, most] = [formatBytes(file.size), formatBytes(maxBytes)];
    return { size, problem: `This file has ${has}; at most ${most} can be uploaded` };
  } catch {
    return unreadable;
  }
}

/** Tells the operator that people want more; nobody waits for the answer. */
function reportOversize({ x, y }: ImageSize) {
  api
    .GET('/api/free/upload', { params: { query: { x: String(x), y: String(y), url: window.location.href } } })
    .catch(() => {});
}
