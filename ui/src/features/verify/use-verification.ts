import { useMutation } from '@tanstack/react-query';
import { useEffect, useRef, useState } from 'react';
import { fetchFile, sendFile } from '@/lib/api-client';
import type { Verification } from '@/lib/api-types';
import { useConfig } from '@/lib/env';
import { UserError } from '@/lib/failure-text';
import { isCommon, isHeif } from '@/lib/picture-kind';
import { t } from '@/lib/translate';
import { tooLargeText } from '@/lib/upload-size';

/** `url` is the object URL of the file: the browser shows the picture from its own memory. */
export type CheckedPicture = { file: File; url: string };

/** A result of this server, by its signed URL. */
export type LinkedPicture = { url: string; name: string };

/** Verifies one picture after another. A later picture cancels the verification of an earlier one. */
export function useVerification() {
  const { maxUploadBytes } = useConfig().limits;
  const [picture, setPicture] = useState<CheckedPicture | null>(null);
  const [sent, setSent] = useState(0);
  const stopping = useRef(new AbortController());
  const url = picture?.url;

  useEffect(() => () => void (url && URL.revokeObjectURL(url)), [url]);
  useEffect(() => () => stopping.current.abort(), []);

  const run = useMutation({
    mutationFn: async (source: File | LinkedPicture): Promise<Verification> => {
      stopping.current.abort();
      stopping.current = new AbortController();
      const { signal } = stopping.current;
      setSent(0);
      if (!(source instanceof File)) setPicture(null);
      const file = source instanceof File ? source : await fileOf(source);
      signal.throwIfAborted();
      if (file !== picture?.file) setPicture({ file, url: URL.createObjectURL(file) });
      refuse(file, maxUploadBytes);
      const { body } = await sendFile('/api/verify', file, { signal, onProgress: setSent });
      return JSON.parse(await body.text());
    },
  });

  return {
    picture,
    /** How much of the file has been sent, from 0 to 1. */
    sent,
    isBusy: run.isPending,
    error: run.error,
    report: run.data ?? null,
    check: (source: File | LinkedPicture) => run.mutate(source),
    tryAgain: () => run.variables && run.mutate(run.variables),
  };
}

/** Results are stored as PNG. */
async function fileOf({ url, name }: LinkedPicture): Promise<File> {
  return new File([await fetchFile(url)], name, { type: 'image/png' });
}

/** Browsers know more formats than the server reads. No pixel is decoded, so a picture may have any dimensions. */
function refuse(file: File, maxBytes: number) {
  if (!isCommon(file) && !isHeif(file)) {
    throw new UserError(
      t('We can’t read this file as an image. Choose a JPG, PNG, WebP, HEIC or AVIF file.'),
    );
  }
  const tooLarge = tooLargeText(file, maxBytes);
  if (tooLarge) throw new UserError(tooLarge);
}
