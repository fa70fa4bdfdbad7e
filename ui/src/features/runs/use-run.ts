import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useEffect, useEffectEvent, useRef, useState } from 'react';
import type { Tool } from '@/features/catalog/tool';
import { ApiError, isProblem } from '@/lib/api-client';
import type { Job, Result } from '@/lib/api-types';
import { failureText, problemText } from '@/lib/failure-text';
import { newId } from '@/lib/new-id';
import { closeToast, notify } from '@/lib/notify';
import { queryKeys } from '@/lib/query-keys';
import { t } from '@/lib/translate';
import { resultReady } from './announcements';
import { usePreconditionCheck } from './check-preconditions';
import { hasEndedWithoutResult } from './job-state';
import { useImageRuns } from './use-image-runs';

export type RunProblem = { kind: 'not-enough-credits' } | { kind: 'refused'; detail: string };

/** Why the API refused a run, or why its job failed. */
type Refusal = { code?: string | null; detail: string };

type Run = Pick<Job, 'tier' | 'factor'>;

type RunOptions<Request> = {
  tool: Tool;
  imageId: string;
  /** The results of the tool that the page shows; undefined while unknown. */
  shown: Result[] | undefined;
  send: (request: Request, idempotencyKey: string) => Promise<Job | Result[]>;
  /** Whether two requests are equal, so that the second one retries the first. */
  isRetry: (request: Request, earlier: Request) => boolean;
  /** Whether a request starts runs like this one. */
  isRunOf: (request: Request, run: Run) => boolean;
  /** The API has taken the request, and answers with its job or its results. */
  onAccepted?: (answer: Job | Result[], request: Request) => void;
  onDone: (results: Result[]) => void;
  /** Handles a refusal that the tool explains itself; returns false to have it shown in the usual way. */
  onRefused: (refusal: Refusal, request: Request | null) => boolean;
};

type Attempt<Request> = {
  request: Request;
  /** Makes its repeats start a single run. */
  key: string;
  isRepeat: boolean;
  /** The results that were shown before. */
  seen: Result[] | undefined;
};

/** A run on a stored image, from the click to the new results in the list. */
export function useRun<Request>({
  tool,
  imageId,
  shown,
  send,
  isRetry,
  isRunOf,
  onAccepted,
  onDone,
  onRefused,
}: RunOptions<Request>) {
  const [problem, setProblem] = useState<RunProblem | null>(null);
  /** Announced to screen readers. */
  const [announcement, setAnnouncement] = useState('');
  // A request that may have reached the API keeps its idempotency key when it is repeated.
  const pending = useRef<Attempt<Request> | null>(null);
  /** Whether the shown problem is a lost answer, which the run itself may disprove. */
  const isAnswerLost = useRef(false);
  /** Whether a run like the request has ended while it is being sent: most likely its own. */
  const hasEnded = useRef(false);
  const failureToast = useRef<string | null>(null);
  const checkPreconditions = usePreconditionCheck(imageId);
  const queryClient = useQueryClient();

  /** Whether a run is most likely that of the request whose answer is due or was lost, if there is one. */
  const isPending = (run: Run) => !pending.current || isRunOf(pending.current.request, run);

  function arrive(results: Result[]) {
    if (results.some(isPending)) {
      hasEnded.current = true;
      clearProblem();
    }
    setAnnouncement(t(resultReady));
    onDone(results);
  }

  function clearProblem() {
    setProblem(null);
    if (failureToast.current) void closeToast(failureToast.current);
  }

  function fail(detail: string) {
    clearProblem();
    // A toast with the id of one that is closing would not be shown.
    failureToast.current = newId();
    void notify('error', t(tool.texts.runFailed), failureToast.current);
    setProblem(detail ? { kind: 'refused', detail } : null);
  }

  const active = useImageRuns({
    imageId,
    tool: tool.name,
    onDone: arrive,
    onFailed: (job) => {
      const { failure } = job;
      if (isPending(job)) hasEnded.current = true;
      if (!failure || !onRefused(failure, null)) fail(failure ? problemText(failure) : '');
    },
  });

  const submit = useMutation({
    mutationFn: async ({ request, key }: Attempt<Request>) => {
      await checkPreconditions();
      return send(request, key);
    },
    onSuccess: (answer, { request, isRepeat, seen }) => {
      pending.current = null;
      const isJob = !Array.isArray(answer);
      const isKnown =
        isJob && (hasEndedWithoutResult(answer) || seen?.some(({ jobId }) => jobId === answer.id));
      // The user has asked for a run after the one whose answer was lost.
      if (isRepeat && isKnown) return submitAttempt({ request, key: newId(), isRepeat: false });
      onAccepted?.(answer, request);
      if (isJob) active.update(answer);
      else active.complete(answer);
    },
    onError: (error, { request }) => {
      const isLost = !(error instanceof ApiError && (error.status < 500 || error.detail));
      // Any other refusal may have come before the API looked for the key's job.
      const isKeyRefused = error instanceof ApiError && error.code === 'idempotency_key_reused';
      if (isKeyRefused) pending.current = null;
      isAnswerLost.current = isLost;
      // The page shows the run, or how it ended.
      if (isLost && (hasEnded.current || (active.job && isPending(active.job)))) return;
      if (isProblem(error, 402)) return setProblem({ kind: 'not-enough-credits' });
      // The image or the result was deleted elsewhere; the page says which.
      if (isProblem(error, 404)) {
        void queryClient.invalidateQueries({ queryKey: queryKeys.userImage(imageId) });
        void queryClient.invalidateQueries({ queryKey: tool.resultsKey(imageId) });
      }
      if (error instanceof ApiError && onRefused(error, request)) return;
      fail(failureText(error));
    },
  });

  function start(request: Request) {
    if (submit.isPending || active.job) return;
    clearProblem();
    setAnnouncement('');
    const earlier = pending.current;
    const isRepeat = earlier !== null && isRetry(request, earlier.request);
    submitAttempt({ request, key: isRepeat ? earlier.key : newId(), isRepeat });
  }

  function submitAttempt(next: Omit<Attempt<Request>, 'seen'>) {
    const attempt = { ...next, seen: shown };
    hasEnded.current = false;
    pending.current = attempt;
    submit.mutate(attempt);
  }

  // The result of a run whose answer and end were lost arrives with the list.
  const onShown = useEffectEvent((results: Result[]) => {
    const seen = isAnswerLost.current ? pending.current?.seen : undefined;
    const isNew = ({ imageId }: Result) => !seen?.some((result) => result.imageId === imageId);
    if (seen && results.some((result) => isNew(result) && isPending(result))) clearProblem();
  });
  useEffect(() => {
    if (shown) onShown(shown);
  }, [shown]);

  const onRunning = useEffectEvent(clearProblem);
  const isRunning = active.job !== null;
  useEffect(() => {
    if (isRunning) onRunning();
  }, [isRunning]);

  return {
    start,
    /** The request being sent. */
    starting: submit.isPending ? (submit.variables?.request ?? null) : null,
    job: active.job,
    otherJobs: active.otherJobs,
    /** Takes the API's answer to a cancellation; the job may have ended before it. */
    onCancelResponse: (job: Job) => {
      if (job.state === 'cancelled') {
        clearProblem();
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
