import type { QueryClient } from '@tanstack/react-query';
import type { NavigateFunction } from 'react-router';
import { removeBackground } from '@/features/catalog/remove-background';
import { upscale } from '@/features/catalog/upscale';
import { batchRunner } from './batch-runner';
import { useBatches } from './batch-store';
import './keep-batches';

/** Follows the batches that a reload has interrupted on any page, so that their ends are reported. */
export function resumeBatches(queryClient: QueryClient, userId: string | null, navigate: NavigateFunction) {
  for (const tool of [removeBackground, upscale]) {
    const batch = useBatches.getState()[tool.name];
    if (batch?.hasStarted && !batch.hadEnded && batch.owner === userId)
      void batchRunner(tool, queryClient).resume(navigate);
  }
}
