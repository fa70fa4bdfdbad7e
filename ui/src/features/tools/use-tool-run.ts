import { useState } from 'react';
import type { EditingTool, ToolAction } from '@/features/catalog/tool';
import { useResults } from '@/features/results/get-results';
import { runLimit } from '@/features/runs/run-request';
import { useRun } from '@/features/runs/use-run';
import { api, unwrap } from '@/lib/api-client';
import type { Result } from '@/lib/api-types';
import { notifyError } from '@/lib/notify';
import { t } from '@/lib/translate';

/** A run that needs nothing but the image and a click. */
export function useToolRun(tool: EditingTool, imageId: string, onDone: (results: Result[]) => void) {
  const [isFreeRefused, setFreeRefused] = useState(false);

  const run = useRun<ToolAction>({
    tool,
    imageId,
    shown: useResults(tool, imageId).data,
    onDone,
    nameOf: (action) => `${action.path} ${imageId}`,
    isRunOf: (action, { tier, factor }) =>
      (tier === 'free') === (action === tool.free) && (factor ?? null) === action.factor,
    send: async (action, idempotencyKey) =>
      unwrap(
        await api.POST(action.path, {
          signal: runLimit(),
          params: {
            query: { imageId },
            header: { 'Idempotency-Key': idempotencyKey, Prefer: 'respond-async' },
          },
        }),
      ),
    onRefused: ({ detail }, action) => {
      const isUsed = action === tool.free && detail === 'Free Exists';
      if (isUsed) {
        setFreeRefused(true);
        notifyError(t(tool.texts.freeExists));
      }
      return isUsed;
    },
  });

  return { ...run, isFreeRefused };
}
