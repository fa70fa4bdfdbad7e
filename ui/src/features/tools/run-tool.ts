import { useMutation } from '@tanstack/react-query';
import { useRef, useState } from 'react';
import { ApiError, api, connectionLost, isProblem, unwrap } from '@/lib/api-client';
import type { Job, Result } from '@/lib/api-types';
import { newId } from '@/lib/new-id';
import { notifyError } from '@/lib/notify';
import { useFollowRun } from './follow-run';
import type { EditingTool, ToolAction } from './tool';

export type RunProblem = { kind: 'not-enough-credits' } | { kind: 'refused'; detail: string };

/** One run of a tool on a stored image, from the click to the new results in the list. */
export function useRunTool(tool: EditingTool, imageId: string, onDone: (results: Result[]) => void) {
  const [problem, setProblem] = useState<RunProblem | null>(null);
  const [freeRefused, setFreeRefused] = useState(false);
  // One key a click. It is kept when the connection broke: the run may exist, and a repeat must join it.
  const openKey = useRef<{ action: ToolAction; key: string } | null>(null);

  function fail(detail: string) {
    notifyError(tool.texts.runFailed);
    setProblem(detail ? { kind: 'refused', detail } : null);
  }

  const run = useFollowRun({
    imageId,
    tool: tool.name,
    resultsKey: tool.resultsKey(imageId),
    onDone,
    onFailed: (job) => fail(job.failure?.detail ?? ''),
  });

  const submit = useMutation({
    mutationFn: async ({ action, key }: { action: ToolAction; key: string }): Promise<Job | Result[]> =>
      unwrap(
        await api.POST(action.path, {
          params: {
            query: { imageId },
            header: { 'Idempotency-Key': key, Prefer: 'respond-async' },
          },
        }),
      ),
    onSuccess: (answer) => {
      openKey.current = null;
      if (Array.isArray(answer)) run.finishAtOnce(answer);
      else run.track(answer);
    },
    onError: (error, { action }) => {
      if (error instanceof ApiError) openKey.current = null;
      if (isProblem(error, 402)) return setProblem({ kind: 'not-enough-credits' });
      if (action === tool.free && isProblem(error, 409, 'Free Exists')) {
        setFreeRefused(true);
        return notifyError(tool.texts.freeExists);
      }
      fail(error instanceof ApiError ? error.detail : connectionLost);
    },
  });

  function start(action: ToolAction) {
    if (submit.isPending || run.job) return;
    setProblem(null);
    if (openKey.current?.action !== action) openKey.current = { action, key: newId() };
    submit.mutate(openKey.current);
  }

  return {
    start,
    starting: submit.isPending ? (submit.variables?.action ?? null) : null,
    job: run.job,
    onCancelled: run.track,
    isBusy: submit.isPending || run.job !== null || run.isLooking,
    problem,
    freeRefused,
  };
}
