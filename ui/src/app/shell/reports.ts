import type { QueryClient } from '@tanstack/react-query';
import type { NavigateFunction } from 'react-router';
import { type Navigate, showRunToast } from '@/features/runs/run-toast';
import type { Job } from '@/lib/api-types';

/** Reports the end of a run. Without one, follows the batches that a reload has interrupted, and reports their ends. */
export async function report(
  queryClient: QueryClient,
  navigate: NavigateFunction,
  userId: string | null,
  job?: Job,
) {
  const open: Navigate = (to, state) => void navigate(to, { state });
  if (job) return showRunToast(job, open);
  // With the panel: a chunk of its own would add others to the first load of every page.
  const { resumeBatches } = await import('@/features/batch/batch-panel');
  resumeBatches(queryClient, userId, open);
}
