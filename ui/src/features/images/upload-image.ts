import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { sendFile } from '@/lib/api-client';
import type { Image } from '@/lib/api-types';
import { notifyError } from '@/lib/notify';
import { queryKeys } from '@/lib/query-keys';
import { imageTexts } from './texts';

export function useUploadImage(onUploaded: (image: Image) => void) {
  const queryClient = useQueryClient();
  const [fraction, setFraction] = useState(0);

  const mutation = useMutation({
    mutationFn: async ({ file, signal }: { file: File; signal: AbortSignal }) => {
      setFraction(0);
      const { body } = await sendFile('/api/images/upload', file, { onProgress: setFraction, signal });
      return JSON.parse(await body.text()) as Image;
    },
    onSuccess: async (image) => {
      // Not awaited: the new image's page does not need the list.
      void queryClient.invalidateQueries({ queryKey: queryKeys.userImages });
      onUploaded(image);
    },
    onError: (error) => {
      if (error.name !== 'AbortError') notifyError(imageTexts.uploadFailed);
    },
  });

  return { ...mutation, fraction };
}
