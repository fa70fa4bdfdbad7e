import { useState } from 'react';
import { api, unwrap } from '@/lib/api-client';
import type { Result } from '@/lib/api-types';
import { notifyError } from '@/lib/notify';
import { useRun } from './run';
import type { EditingTool, ToolAction } from './tool';

/** A run that needs nothing but the image and a click. */
export function useRunTool(tool: EditingTool, imageId: string, onDone: (results: Result[]) => void) {
  const [freeRefused, setFreeRefused] = useState(false);

  const run = useRun<ToolAction>({
    tool,
    imageId,
    onDone,
    isRepeat: (action, earlier) => action === earlier,
    send: async (action, key) =>
      unwrap(
        await api.POST(action.path, {
          params: {
            query: { imageId },
            header: { 'Idempotency-Key': key, Prefer: 'respond-async' },
          },
        }),
      ),
    onRefused: ({ detail }, action) => {
      const isUsed = action === tool.free && detail === 'Free Exists';
      if (isUsed) {
        setFreeRefused(true);
        notifyError(tool.texts.freeExists);
      }
      return isUsed;
    },
  });

  return { ...run, freeRefused };
}
