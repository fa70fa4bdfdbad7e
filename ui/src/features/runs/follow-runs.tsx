import { useQueryClient } from '@tanstack/react-query';
import { useEffect, useEffectEvent } from 'react';
import { useNavigate } from 'react-router';
import type { Job } from '@/lib/api-types';
import { loadWithRetry } from '@/lib/load-with-retry';
import { useSession } from '@/lib/session';
import { followerOf } from './run-follower';

/** Follows the user's runs on every page, and shows a toast for those that end while their page is not open. */
export function FollowRuns() {
  const { userId } = useSession();
  const queryClient = useQueryClient();
  const navigate = useNavigate();
  const show = useEffectEvent((job: Job) => {
    loadWithRetry(() => import('./run-toast'))
      .then(({ showRunToast }) => showRunToast(job, (to, state) => void navigate(to, { state })))
      // The page of the run shows its end as well.
      .catch(() => {});
  });

  useEffect(() => {
    if (userId) return followerOf(queryClient).start(userId, (job) => show(job));
  }, [queryClient, userId]);
  return null;
}
