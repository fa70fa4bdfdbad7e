import { useQueryClient } from '@tanstack/react-query';
import { useEffect, useEffectEvent } from 'react';
import { useNavigate } from 'react-router';
import { followerOf } from '@/features/runs/run-follower';
import type { Job } from '@/lib/api-types';
import { loadWithRetry } from '@/lib/load-with-retry';
import { useSession } from '@/lib/session';
import { STORED_BATCHES } from '@/lib/sign-out-cleanup';

/** Follows the user's runs on every page, and shows a toast for those that end while their page is not open. */
export function FollowRuns() {
  const { userId } = useSession();
  const queryClient = useQueryClient();
  const navigate = useNavigate();
  const report = useEffectEvent(async (job?: Job) => {
    try {
      if (job || sessionStorage.getItem(STORED_BATCHES))
        await (await loadWithRetry(() => import('./reports'))).report(queryClient, navigate, userId, job);
    } catch {
      // Without the code or the storage. The page of the run or the batch shows its end as well.
    }
  });

  useEffect(() => {
    if (!userId) return;
    void report();
    return followerOf(queryClient).start(userId, report);
  }, [queryClient, userId]);
  return null;
}
