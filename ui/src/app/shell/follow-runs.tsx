import { useQueryClient } from '@tanstack/react-query';
import { useEffect, useEffectEvent } from 'react';
import { useNavigate } from 'react-router';
import { followerOf } from '@/features/runs/run-follower';
import type { Job } from '@/lib/api-types';
import { loadWithRetry } from '@/lib/load-with-retry';
import { useSession } from '@/lib/session';
import { STORED_BATCHES } from '@/lib/sign-out-cleanup';

const loadReports = () => import('./reports');

/** Follows the user's runs on every page, and shows a toast for those that end while their page is not open. */
export function FollowRuns() {
  const { userId } = useSession();
  const queryClient = useQueryClient();
  const navigate = useNavigate();

  const reportRun = useEffectEvent(async (job: Job) => {
    try {
      const { showRunToast } = await loadWithRetry(loadReports, { canBeMissing: true });
      showRunToast(job, navigate);
    } catch {
      // Without the code. The page of the run shows its end as well.
    }
  });
  const resume = useEffectEvent(async () => {
    try {
      // Throws if the storage is blocked. No batch has survived a reload then.
      if (!sessionStorage.getItem(STORED_BATCHES)) return;
      const { resumeBatches } = await loadWithRetry(loadReports, { canBeMissing: true });
      await resumeBatches(queryClient, userId, navigate);
    } catch {
      // Without the code. The page of the batch resumes it as well.
    }
  });

  useEffect(() => {
    if (!userId) return;
    void resume();
    return followerOf(queryClient).start(userId, reportRun);
  }, [queryClient, userId]);
  return null;
}
