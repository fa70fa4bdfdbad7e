import type { QueryClient } from '@tanstack/react-query';
import type { NavigateFunction } from 'react-router';
import { showRunToast } from '@/features/runs/run-toast';
import type { Job } from '@/lib/api-types';

/** Reports the end of a run. Without one, follows the batches that a reload has interrupted, and reports their ends. */
export async function report(
  queryClient: QueryClient,
  navigate: NavigateFunction,
  userId: string | null,
  job?: Job,
) {
  if (job) return showRunToast(job, navigate);
  // Imported through the panel: a separate chunk would pull others into the first load of every page.
  const { resumeBatches } = await import('@/features/batch/batch-panel');
  resumeBatches(queryClient, userId, navigate);
}
