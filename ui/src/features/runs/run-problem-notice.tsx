import { Suspense } from 'react';
import { lazyWithRetry } from '@/components/lazy-with-retry';
import { Notice } from '@/components/notice';
import type { RunProblem } from './attempts';

const NotEnoughCredits = lazyWithRetry(() => import('@/components/not-enough-credits'));

/** Why the last run failed or did not start. */
export function RunProblemNotice({ problem }: { problem: RunProblem | null }) {
  if (!problem) return null;
  if (problem.kind === 'refused') return problem.detail && <Notice tone="error">{problem.detail}</Notice>;
  return (
    <Suspense>
      <NotEnoughCredits />
    </Suspense>
  );
}
