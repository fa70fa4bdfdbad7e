import { useQueryClient } from '@tanstack/react-query';
import { useEffect, useEffectEvent, useState } from 'react';
import type { Image } from '@/lib/api-types';
import { startUpload } from './send-upload';
import { attendUpload, isUnfinished, removeUpload, useUploads } from './uploads';

/** The upload of this page. If the user leaves, it continues in the shell, and `onUploaded` is not called. */
export function useUpload(prefix: string, onUploaded: (image: Image) => void) {
  const queryClient = useQueryClient();
  const [id, setId] = useState<string | null>(null);
  const upload = useUploads(({ uploads }) => uploads.find((one) => one.id === id)) ?? null;
  const state = upload?.state;

  useEffect(() => (id ? attendUpload(id) : undefined), [id]);

  const image = state?.kind === 'done' ? state.image : null;
  const finish = useEffectEvent((image: Image) => {
    if (id) removeUpload(id);
    onUploaded(image);
  });
  useEffect(() => {
    if (image) finish(image);
  }, [image]);

  return {
    isSending: upload !== null && isUnfinished(upload),
    fraction: state?.kind === 'sending' ? state.fraction : 0,
    error: state?.kind === 'failed' ? state.error : null,
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
