import { NotEnoughCredits } from '@/components/not-enough-credits';
import { Notice } from '@/components/notice';
import type { RunProblem } from './use-run';

/** Why the last run failed or did not start. */
export function RunProblemNotice({ problem }: { problem: RunProblem | null }) {
  if (!problem) return null;
  return problem.kind === 'refused' ? <Notice tone="error">{problem.detail}</Notice> : <NotEnoughCredits />;
}
