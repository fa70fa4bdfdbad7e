import { useMutation } from '@tanstack/react-query';
import { useRef, useState } from 'react';
import { ApiError, isProblem } from '@/lib/api-client';
import type { Job, Result } from '@/lib/api-types';
import { loadFollowing } from '@/lib/job-state';
import { newId } from '@/lib/new-id';
import { notifyError } from '@/lib/notify';
import { useCallCheck } from './check-call';
import { useFollowRun } from './follow-run';
import { readyText } from './ready-text';
import { reasonOf } from './reason-of';
import type { Tool } from './tool';

export type RunProblem = { kind: 'not-enough-credits' } | { kind: 'refused'; detail: string };

/** Why the API would not run, or why a run failed. */
export type Refusal = { code?: string | null; detail: string };

type RunOptions<Request> = {
  tool: Tool;
  imageId: string;
  send: (request: Request, key: string) => Promise<Job | Result[]>;
  /** Whether two requests ask for the same, so that the second is a repeat of a lost first one. */
  isRepeat: (request: Request, earlier: Request) => boolean;
  onDone: (results: Result[]) => void;
  /** For a tool with words of its own: true when it has told the person, and nothing else needs to. */
  onRefused: (refusal: Refusal, request: Request | null) => boolean;
};

/** One run on a stored image, from the click to the new results in the list. */
export function useRun<Request>({ tool, imageId, send, isRepeat, onDone, onRefused }: RunOptions<Request>) {
  const [problem, setProblem] = useState<RunProblem | null>(null);
  // What is announced to those who cannot see it happen.
  const [news, setNews] = useState('');
  // One key a click. It is kept when the connection broke: the run may exist, and a repeat must join it.
  const open = useRef<{ request: Request; key: string } | null>(null);
  const check = useCallCheck(imageId);

  function fail(detail: string) {
    notifyError(tool.texts.runFailed);
    setProblem(detail ? { kind: 'refused', detail } : null);
  }

  const run = useFollowRun({
    imageId,
    tool: tool.name,
    resultsKey: tool.resultsKey(imageId),
    onDone: (results) => {
      setNews(readyText);
      onDone(results);
    },
    onFailed: ({ failure }) => {
      if (!failure || !onRefused(failure, null)) fail(failure?.detail ?? '');
    },
  });

  const submit = useMutation({
    mutationFn: async ({ request, key }: { request: Request; key: string }) => {
      check();
      // Meanwhile, so that following the run does not wait for the code that does it.
      void loadFollowing().catch(() => {});
      return send(request, key);
    },
    onSuccess: (answer) => {
      open.current = null;
      if (Array.isArray(answer)) run.finishAtOnce(answer);
      else run.track(answer);
    },
    onError: (error, { request }) => {
      if (error instanceof ApiError) open.current = null;
      if (isProblem(error, 402)) return setProblem({ kind: 'not-enough-credits' });
      if (error instanceof ApiError && onRefused(error, request)) return;
      fail(reasonOf(error));
    },
  });

  function start(request: Request) {
    if (submit.isPending || run.job) return;
    setProblem(null);
    setNews('');
    if (!open.current || !isRepeat(request, open.current.request)) open.current = { request, key: newId() };
    submit.mutate(open.current);
  }

  return {
    start,
    starting: submit.isPending ? (submit.variables?.request ?? null) : null,
    job: run.job,
    others: run.others,
    onCancelled: (job: Job) => {
      if (job.state === 'cancelled') setNews('The run was cancelled');
      run.track(job);
    },
    isBusy: submit.isPending || run.job !== null || run.isLooking,
    problem,
    news,
  };
}
