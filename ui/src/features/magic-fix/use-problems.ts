import { useState } from 'react';
import { closeToast, notifyError } from '@/lib/notify';
import type { useFixRun } from './use-fix-run';

/** Why the prompt and the mask cannot be used. */
type Problems = { prompt: string | null; mask: string | null };

const noProblems: Problems = { prompt: null, mask: null };

/** The problems that were found before a run, and the problem that made the API refuse it. */
export function useProblems(
  { refusal, clearRefusal }: ReturnType<typeof useFixRun>,
  focusPrompt: () => void,
) {
  const [problems, setProblems] = useState(noProblems);

  const of = (field: keyof Problems) => problems[field] ?? (refusal?.field === field ? refusal.detail : null);

  /** Forgets a problem, here and in its toast. */
  function forget(field: keyof Problems) {
    const problem = of(field);
    if (problem) void closeToast(problem);
    setProblems((old) => ({ ...old, [field]: null }));
  }

  return {
    of,
    /** Tells the user why the run does not start. */
    show: (found: Problems) => {
      setProblems(found);
      for (const problem of [found.mask, found.prompt]) if (problem) notifyError(problem);
      if (found.prompt) focusPrompt();
    },
    /** After a change of the field. */
    clear: (field: keyof Problems) => {
      forget(field);
      clearRefusal();
    },
    clearAll: () => {
      forget('prompt');
      forget('mask');
    },
  };
}
