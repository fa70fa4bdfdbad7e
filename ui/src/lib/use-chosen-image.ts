import { useEffect, useRef, useState } from 'react';
import { t } from '@/lib/translate';
import { api, isVerdict, sendForm } from './api-client';
import type { Config } from './api-types';
import { useConfig } from './env';
import { failureText, problemText } from './failure-text';
import { type ImageSize, readImageSize } from './image-size';
import { isTooBig, tooBigText } from './max-dimension';
import { isCommon, isHeif, isPicture, isRaw, missingFormat } from './picture-kind';
import { tooLargeText } from './upload-size';

export type ChosenImage = {
  file: File;
  /** Object URL of the file, or of the server's preview of a file that this browser cannot show. */
  url: string;
  /** Whether it is the preview, which may be smaller than the picture. */
  isPreview?: boolean;
  /** Null while the file is being read, and if it cannot be shown. */
  size: ImageSize | null;
  /** Why the file cannot be used; null while it is being read, and if it can be used. */
  problem: string | null;
  /** Whether it has been read and can be used. */
  isReady: boolean;
};

/** One chosen file, measured and checked against the installation's limits. */
export function useChosenImage(maxDimension: number) {
  const config = useConfig();
  const [chosen, setChosen] = useState<ChosenImage | null>(null);
  const stopping = useRef(new AbortController());
  const url = chosen?.url;

  useEffect(() => () => void (url && URL.revokeObjectURL(url)), [url]);
  useEffect(() => () => stopping.current.abort(), []);

  async function choose(file: File) {
    if (!isPicture(file)) return;
    stopping.current.abort();
    stopping.current = new AbortController();
    const { signal } = stopping.current;
    const url = URL.createObjectURL(file);
    setChosen({ file, url, size: null, problem: null, isReady: false });
    let found: Found = await checkImageFile(file, url, fileLimits(config, maxDimension));
    if (found.needsServer) found = await serverPreview(file, maxDimension, signal, found.problem);
    // A slow file must not overwrite a later choice.
    if (!signal.aborted) setChosen({ file, url, ...found, isReady: !found.problem });
  }

  function clear() {
    stopping.current.abort();
    setChosen(null);
  }

  return { chosen, choose, clear };
}

type Found = Pick<ChosenImage, 'size' | 'problem'> &
  Partial<ChosenImage> & {
    /** Whether this browser cannot show the file, so the server has to: it may be able to, or can say what the file is. */
    needsServer?: boolean;
  };

/**
 * Lets the server show and measure a file that this browser cannot show. Without a verdict from the server, `problem`
 * stands.
 */
async function serverPreview(
  file: File,
  maxDimension: number,
  signal: AbortSignal,
  problem: string | null,
): Promise<Found> {
  try {
    const { body, header } = await sendForm('/api/preview', { file }, { signal });
    const size = { x: Number(header('x-width')), y: Number(header('x-height')) };
    return {
      url: URL.createObjectURL(body),
      isPreview: true,
      size,
      problem: sizeProblem(size, maxDimension),
    };
  } catch (error) {
    if (!isVerdict(error)) return { size: null, problem };
    // The server names the limit of uploads, which may not be that of the tool.
    const isTooLarge = error.code === 'image_too_large';
    return { size: null, problem: isTooLarge ? tooBigText(maxDimension) : failureText(error) };
  }
}

/** The limits that files must meet. */
export type FileLimits = { maxDimension: number; maxBytes: number; formats: Config['features'] };

/** Pictures with sides of at most `maxDimension` pixels, as this server reads them. */
export const fileLimits = ({ limits, features }: Config, maxDimension: number): FileLimits => ({
  maxDimension,
  maxBytes: limits.maxUploadBytes,
  formats: features,
});

/** Measures a file and explains why it cannot be used, if so. Reports oversize files to the operator. */
export async function checkImageFile(
  file: File,
  url: string,
  { maxDimension, maxBytes, formats }: FileLimits,
): Promise<Found> {
  const tooLarge = tooLargeText(file, maxBytes);
  const unreadable = {
    size: null,
    problem: t('We can’t read this file as an image. Choose a JPG, PNG, WebP, HEIC or AVIF file.'),
    needsServer: !tooLarge,
  };
  // Browsers decode more formats than the server, which would refuse them after the upload.
  const missing = missingFormat(file, formats);
  const kind = missing ? unavailableText(missing) : kindProblem(file);
  if (kind !== null) return kind ? { size: null, problem: kind } : unreadable;
  try {
    const size = await readImageSize(url).catch((error) => {
      if (isHeif(file)) return null;
      throw error;
    });
    const problem = size && sizeProblem(size, maxDimension);
    if (problem) return { size, problem };
    return { size, problem: tooLarge, needsServer: !size && !tooLarge };
  } catch {
    return unreadable;
  }
}

/** The server's words about a format that it does not read. */
function unavailableText(format: string): string {
  const detail = `${format} files cannot be read here. Save the picture as JPEG or PNG and upload that.`;
  return problemText({ detail, code: 'image_format_unavailable' });
}

/** Why the server would refuse a picture of this kind: a sentence, or '' if it has no name. Null if it takes it. */
function kindProblem(file: File): string | null {
  if (isCommon(file) || isHeif(file)) return null;
  if (isRaw(file)) {
    const detail = 'This is a RAW photo. Export it as JPEG or PNG and upload that.';
    return problemText({ detail, code: 'image_raw' });
  }
  if (file.type !== 'image/svg+xml') return '';
  const detail = 'This is a drawing (SVG). Export it as PNG and upload that.';
  return problemText({ detail, code: 'image_drawing' });
}

/** Why a picture of this size cannot be used, if so. */
function sizeProblem(size: ImageSize, maxDimension: number): string | null {
  if (!isTooBig(size, maxDimension)) return null;
  reportOversize(size);
  return tooBigText(maxDimension);
}

/** Tells the operator that users want larger images. The response is ignored. */
function reportOversize({ x, y }: ImageSize) {
  api
    .GET('/api/free/upload', { params: { query: { x: String(x), y: String(y), url: window.location.href } } })
    .catch(() => {});
}
