import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useRef, useState } from 'react';
import type { Tool } from '@/features/catalog/tool';
import { ApiError, isProblem } from '@/lib/api-client';
import type { Job, Result } from '@/lib/api-types';
import { failureText, problemText } from '@/lib/failure-text';
import { newId } from '@/lib/new-id';
import { notifyError } from '@/lib/notify';
import { queryKeys } from '@/lib/query-keys';
import { t } from '@/lib/translate';
import { resultReady } from './announcements';
import { usePreconditionCheck } from './check-preconditions';
import { useImageRuns } from './use-image-runs';

export type RunProblem = { kind: 'not-enough-credits' } | { kind: 'refused'; detail: string };

/** Why the API refused a run, or why its job failed. */
type Refusal = { code?: string | null; detail: string };

type RunOptions<Request> = {
  tool: Tool;
  imageId: string;
  send: (request: Request, idempotencyKey: string) => Promise<Job | Result[]>;
  /** Whether two requests are equal, so that the second one retries the first. */
  isRetry: (request: Request, earlier: Request) => boolean;
  onDone: (results: Result[]) => void;
  /** Handles a refusal that the tool explains itself; returns false to have it shown in the usual way. */
  onRefused: (refusal: Refusal, request: Request | null) => boolean;
};

/** A run on a stored image, from the click to the new results in the list. */
export function useRun<Request>({ tool, imageId, send, isRetry, onDone, onRefused }: RunOptions<Request>) {
  const [problem, setProblem] = useState<RunProblem | null>(null);
  /** Announced to screen readers. */
  const [announcement, setAnnouncement] = useState('');
  // Each click has its own idempotency key. After a lost connection or a 5xx the key is reused: the job may exist.
  const pending = useRef<{ request: Request; key: string } | null>(null);
  const checkPreconditions = usePreconditionCheck(imageId);
  const queryClient = useQueryClient();

  /** Forgets a request whose answer was lost once a run ends, which may be its run: the next click starts another one. */
  function forgetLost() {
    if (!submit.isPending) pending.current = null;
  }

  function fail(detail: string) {
    notifyError(t(tool.texts.runFailed));
    setProblem(detail ? { kind: 'refused', detail } : null);
  }

  const active = useImageRuns({
    imageId,
    tool: tool.name,
    onDone: (results) => {
      forgetLost();
      setProblem(null);
      setAnnouncement(t(resultReady));
      onDone(results);
    },
    onFailed: ({ failure }) => {
      forgetLost();
      if (!failure || !onRefused(failure, null)) fail(failure ? problemText(failure) : '');
    },
  });

  const submit = useMutation({
    mutationFn: async ({ request, key }: { request: Request; key: string }) => {
      await checkPreconditions();
      return send(request, key);
    },
    onSuccess: (answer) => {
      pending.current = null;
      if (Array.isArray(answer)) active.complete(answer);
      else active.update(answer);
    },
    onError: (error, { request }) => {
      if (error instanceof ApiError && error.status < 500) pending.current = null;
      if (isProblem(error, 402)) return setProblem({ kind: 'not-enough-credits' });
      // Deleted elsewhere: the page says so.
      if (isProblem(error, 404, 'Image not found')) {
        void queryClient.resetQueries({ queryKey: queryKeys.userImage(imageId) });
      } else if (isProblem(error, 404)) {
        void queryClient.invalidateQueries({ queryKey: tool.resultsKey(imageId) });
      }
      if (error instanceof ApiError && onRefused(error, request)) return;
      fail(failureText(error));
    },
  });

  function start(request: Request) {
    if (submit.isPending || active.job) return;
    setProblem(null);
    setAnnouncement('');
    if (!pending.current || !isRetry(request, pending.current.request)) {
      pending.current = { request, key: newId() };
    }
    submit.mutate(pending.current);
  }

  return {
    start,
    /** The request being sent. */
    starting: submit.isPending ? (submit.variables?.request ?? null) : null,
    job: active.job,
    otherJobs: active.otherJobs,
    /** Takes the API's answer to a cancellation; the job may have ended before it. */
    onCancelResponse: (job: Job) => {
      if (job.state === 'cancelled') {
        forgetLost();
        setProblem(null);
        setAnnouncement(t('The run was canceled'));
      }
      active.update(job);
    },
    isBusy: submit.isPending || active.job !== null || active.isLoading,
    // A run whose answer was lost may show up.
    problem: active.job ? null : problem,
    announcement,
  };
}
