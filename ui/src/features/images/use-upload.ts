import { useQueryClient } from '@tanstack/react-query';
import { useEffect, useEffectEvent, useState } from 'react';
import type { Image } from '@/lib/api-types';
import { attendUpload, isSending, removeUpload, startUpload, useUploads } from './uploads';

/** The upload of this page. If the page is left, the upload goes on in the shell, and `onUploaded` is not called. */
export function useUpload(prefix: string, onUploaded: (image: Image) => void) {
  const queryClient = useQueryClient();
  const [id, setId] = useState<string | null>(null);
  const upload = useUploads(({ uploads }) => uploads.find((one) => one.id === id)) ?? null;

  useEffect(() => (id ? attendUpload(id) : undefined), [id]);

  const image = upload?.image;
  const finish = useEffectEvent((image: Image) => {
    if (id) removeUpload(id);
    onUploaded(image);
  });
  useEffect(() => {
    if (image) finish(image);
  }, [image]);

  return {
    isSending: upload !== null && isSending(upload),
    fraction: upload?.fraction ?? 0,
    error: upload?.error ?? null,
    start: (file: File) => {
      // The failed attempt before.
      if (id) removeUpload(id);
      setId(startUpload(queryClient, file, prefix));
    },
    cancel: () => {
      if (id) removeUpload(id);
      setId(null);
    },
  };
}
