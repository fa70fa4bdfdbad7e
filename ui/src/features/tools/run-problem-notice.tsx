import { NotEnoughCredits } from '@/components/not-enough-credits';
import { Notice } from '@/components/notice';
import type { RunProblem } from './run';

/** Why the last run did not come about, beside the button that was to start it. */
export function RunProblemNotice({ problem }: { problem: RunProblem | null }) {
  if (!problem) return null;
  return problem.kind === 'refused' ? <Notice tone="error">{problem.detail}</Notice> : <NotEnoughCredits />;
}
