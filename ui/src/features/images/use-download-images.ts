import { useMutation } from '@tanstack/react-query';
import { useRef, useState } from 'react';
import type { ArchiveContent, Image } from '@/lib/api-types';
import { loadWithRetry } from '@/lib/load-with-retry';
import { notifyError } from '@/lib/notify';
import { t } from '@/lib/translate';
import { imageTexts } from './texts';

export const loadDownloadImages = () => import('./download-images');

type Download = { images: Image[]; include: ArchiveContent };

/** Downloads images as a ZIP file. The download continues if the user leaves the page. */
export function useDownloadImages() {
  const [received, setReceived] = useState(0);
  const stopping = useRef(new AbortController());
  const { isPending, error, variables, mutate, reset } = useMutation({
    mutationFn: async ({ images, include }: Download) => {
      stopping.current = new AbortController();
      setReceived(0);
      const { signal } = stopping.current;
      const imageIds = images.map(({ id }) => id);
      try {
        const { downloadImages } = await loadWithRetry(loadDownloadImages);
        await downloadImages({ imageIds, include }, setReceived, signal);
      } catch (error) {
        if (!signal.aborted) throw error;
      }
    },
    onError: () => notifyError(t(imageTexts.downloadFailed)),
  });
  return {
    isPending,
    error,
    received,
    /** The size of the ZIP file, roughly; null if it is unknown. */
    expected:
      variables?.include === 'originals'
        ? variables.images.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0)
        : null,
    start: mutate,
    cancel: () => stopping.current.abort(),
    forgetError: () => {
      if (!isPending) reset();
    },
  };
}
