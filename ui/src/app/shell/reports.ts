import type { QueryClient } from '@tanstack/react-query';
import type { NavigateFunction } from 'react-router';
import { loadWithRetry } from '@/lib/load-with-retry';

export { showRunToast } from '@/features/runs/run-toast';

// Through the panel: a separate chunk would pull others into the first load of every page.
const loadBatches = () => import('@/features/batch/batch-panel');

/** Follows the batches that a reload has interrupted, and reports their ends. */
export async function resumeBatches(
  queryClient: QueryClient,
  userId: string | null,
  navigate: NavigateFunction,
) {
  const batches = await loadWithRetry(loadBatches, { canBeMissing: true });
  batches.resumeBatches(queryClient, userId, navigate);
}
