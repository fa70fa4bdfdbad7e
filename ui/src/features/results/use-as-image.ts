import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useRef } from 'react';
import { useNavigate } from 'react-router';
import type { Tool } from '@/features/catalog/tool';
import { failureText } from '@/lib/failure-text';
import { notifyError } from '@/lib/notify';
import { imageFromResult } from './image-from-result';

/** Goes on to another tool with a result, without download and upload. */
export function useAsImage(resultId: string) {
  const queryClient = useQueryClient();
  const navigate = useNavigate();
  // The second click of a double click comes before the button is busy.
  const isOpening = useRef(false);
  const open = useMutation({
    mutationFn: (_: Tool) => imageFromResult(queryClient, resultId),
    onError: (error) => {
      isOpening.current = false;
      notifyError(failureText(error));
    },
  });

  return {
    /** The tool that is being opened; also while its page loads. */
    opening: open.isPending || open.isSuccess ? open.variables : null,
    /** Makes the image once. If the user leaves in the meantime, nothing opens. */
    open: (tool: Tool) => {
      if (isOpening.current) return;
      isOpening.current = true;
      open.mutate(tool, {
        onSuccess: async (image) => {
          await navigate(`${tool.pagePath}/${image.id}`);
          // The user may have decided to stay.
          isOpening.current = false;
          open.reset();
        },
      });
    },
  };
}
