import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useEffect, useEffectEvent, useState } from 'react';
import type { Tool } from '@/features/catalog/tool';
import { isProblem } from '@/lib/api-client';
import type { Job, Result } from '@/lib/api-types';
import { failureText, problemText } from '@/lib/failure-text';
import { newId } from '@/lib/new-id';
import { closeToast, notify } from '@/lib/notify';
import { queryKeys } from '@/lib/query-keys';
import { onSignOut } from '@/lib/sign-out-cleanup';
import { t } from '@/lib/translate';
import { resultReady } from './announcements';
import { usePreconditionCheck } from './check-preconditions';
import { hasEndedWithoutResult } from './job-state';
import { isRunRefusal } from './run-request';
import { useImageRuns } from './use-image-runs';

export type RunProblem =
  | { kind: 'not-enough-credits' }
  | { kind: 'refused'; detail: string; toastId: string };

/** Why the API refused a run, or why its job failed. */
type Refusal = { code?: string | null; detail: string };

/** The parameters that distinguish the runs of different requests. */
type Run = Pick<Job, 'tier' | 'factor' | 'prompt'>;

type RunOptions<Request> = {
  tool: Tool;
  imageId: string;
  /** The image that the shown picture has become, if that is another one. */
  targetId?: string | null;
  /** The results of the tool that the page shows; undefined while unknown. */
  shown: Result[] | undefined;
  /** Returns the image to run on, if that may be another one. */
  targetOf?: (request: Request) => Promise<string>;
  send: (request: Request, idempotencyKey: string, imageId: string) => Promise<Job | Result[]>;
  /** Whether two requests are equal, so that the second one retries the first. */
  isRetry: (request: Request, earlier: Request) => boolean;
  /** Whether a request starts runs like this one. */
  isRunOf: (request: Request, run: Run) => boolean;
  /** The API has started the run of a request. */
  onStarted?: (jobId: string, imageId: string, request: Request) => void;
  onDone: (results: Result[]) => void;
  /** A run was refused, failed or was canceled. Without a job, it was refused. */
  onUnsuccessful?: (jobId: string | null) => void;
  /** Handles a refusal that the tool explains itself; returns false to show it in the usual way. */
  onRefused: (refusal: Refusal, request: Request | null) => boolean;
};

type Attempt<Request> = {
  request: Request;
  /** Makes its repeats start a single run. */
  key: string;
  isRepeat: boolean;
  /** The image that it was sent for. */
  imageId: string;
  /** The results of that image that were known before. */
  seen?: Result[] | undefined;
  /** Its job; before the answer, the first one like it. */
  jobId?: string;
  /** The problem that was shown when its answer was lost. */
  lost?: RunProblem;
};

/**
 * The last request of each tool and image that may have reached the API. Its repeat keeps its idempotency key, also after a
 * visit to another page: the request is still on its way, and another key would start a second run.
 */
const unanswered = new Map<string, Attempt<unknown>>();

onSignOut(() => unanswered.clear());

function unansweredAt<Request>(place: string) {
  return {
    get current() {
      return (unanswered.get(place) ?? null) as Attempt<Request> | null;
    },
    set current(attempt) {
      if (attempt) unanswered.set(place, attempt as Attempt<unknown>);
      else unanswered.delete(place);
    },
  };
}

/**
 * A run on a stored image, from the click to the new results in the list.
 *
 * The answer to a request can be late or lost while its run shows up: as an active job, with its end, or as a result in
 * the list. Whichever comes first tells the attempt its job; the others change nothing.
 */
export function useRun<Request>(options: RunOptions<Request>) {
  const { tool, imageId, targetId = null, shown, isRunOf } = options;
  const [problem, setProblem] = useState<RunProblem | null>(null);
  /** Announced to screen readers. */
  const [announcement, setAnnouncement] = useState('');
  /** The last attempt whose job is known. */
  const [started, setStarted] = useState<Attempt<Request> | null>(null);
  const pending = unansweredAt<Request>(`${tool.name} ${imageId}`);
  const checkPreconditions = usePreconditionCheck(imageId);
  const queryClient = useQueryClient();

  function fail(detail: string): RunProblem {
    // A toast with the id of a closing toast would not be shown.
    const failure: RunProblem = { kind: 'refused', detail, toastId: newId() };
    void notify('error', t(tool.texts.runFailed), failure.toastId);
    setProblem(failure);
    return failure;
  }

  function takeBack(failure: RunProblem) {
    setProblem((current) => (current === failure ? null : current));
    if (failure.kind === 'refused') void closeToast(failure.toastId);
  }

  /** Lets the tool explain a refusal. */
  function isExplained(refusal: Refusal, request: Request | null, jobId: string | null = null): boolean {
    options.onUnsuccessful?.(jobId);
    return options.onRefused(refusal, request);
  }

  function arrive(results: Result[]) {
    setAnnouncement(t(resultReady));
    options.onDone(results);
  }

  function setJob(attempt: Attempt<Request>, jobId: string, hasFailed: boolean) {
    if (attempt.jobId === jobId) return;
    attempt.jobId = jobId;
    setStarted(attempt);
    if (attempt.lost) takeBack(attempt.lost);
    if (!hasFailed) options.onStarted?.(jobId, attempt.imageId, attempt.request);
  }

  /** Takes a run for that of the request whose answer is due or was lost, unless they differ. */
  function adopt(run: Run, jobId: string, ofImage: string | null | undefined, hasFailed = false) {
    const attempt = pending.current;
    if (!attempt || attempt.jobId || attempt.imageId !== ofImage || !isRunOf(attempt.request, run)) return;
    setJob(attempt, jobId, hasFailed);
  }

  function adoptJob(job: Job) {
    // Canceled jobs have lost their key.
    const isOfAnother = job.idempotencyKey && job.idempotencyKey !== pending.current?.key;
    if (!isOfAnother) adopt(job, job.id, job.imageId, hasEndedWithoutResult(job));
  }

  const active = useImageRuns({
    imageId,
    targetId,
    tool: tool.name,
    onEnd: (job) => {
      adoptJob(job);
      if (job.state === 'done') return arrive(job.results);
      if (job.state === 'cancelled') return options.onUnsuccessful?.(job.id);
      const { failure } = job;
      if (!failure || !isExplained(failure, null, job.id)) fail(failure ? problemText(failure) : '');
    },
  });

  const submit = useMutation({
    mutationFn: async (attempt: Attempt<Request>) => {
      await checkPreconditions();
      attempt.imageId = (await options.targetOf?.(attempt.request)) ?? imageId;
      attempt.seen = queryClient.getQueryData(tool.resultsKey(attempt.imageId));
      pending.current = attempt;
      return options.send(attempt.request, attempt.key, attempt.imageId);
    },
    onSuccess: (answer, attempt) => {
      if (pending.current === attempt) pending.current = null;
      const job = Array.isArray(answer) ? null : answer;
      const hasFailed = job !== null && hasEndedWithoutResult(job);
      const jobId = Array.isArray(answer) ? answer[0]?.jobId : answer.id;
      const isKnown = job && (hasFailed || attempt.seen?.some((result) => result.jobId === jobId));
      // The user has asked for a run after the one whose answer was lost, unless that one has ended since.
      if (attempt.isRepeat && isKnown && !attempt.jobId) return submitAttempt(attempt.request);
      if (jobId) setJob(attempt, jobId, hasFailed);
      if (job) return active.update(job);
      active.complete(attempt.imageId, answer as Result[]);
      arrive(answer as Result[]);
    },
    onError: (error, attempt) => {
      const isRefused = isRunRefusal(error);
      // The page shows the run, or how it ended.
      if (!isRefused && attempt.jobId) return;
      // Any other refusal of a repeat may have come before the API looked for the key's job.
      const isOver = isRefused && (!attempt.isRepeat || error.code === 'idempotency_key_reused');
      if (isOver && pending.current === attempt) pending.current = null;
      if (isProblem(error, 402)) return setProblem({ kind: 'not-enough-credits' });
      // The image or the result was deleted elsewhere; the page says which.
      if (isProblem(error, 404)) {
        void queryClient.invalidateQueries({ queryKey: queryKeys.userImage(imageId) });
        void queryClient.invalidateQueries({ queryKey: tool.resultsKey(imageId) });
      }
      if (isRefused && isExplained(error, attempt.request)) return;
      const failure = fail(failureText(error));
      if (!isRefused && pending.current?.key === attempt.key) pending.current.lost = failure;
    },
  });
  /** The attempt that waits for its answer, or for its run to show up. */
  const waiting = submit.isPending && submit.variables !== started ? submit.variables : null;

  function start(request: Request) {
    if (waiting || active.job) return;
    if (problem) takeBack(problem);
    setAnnouncement('');
    const earlier = pending.current;
    submitAttempt(request, earlier && options.isRetry(request, earlier.request) ? earlier.key : null);
  }

  function submitAttempt(request: Request, repeatedKey: string | null = null) {
    submit.mutate({ request, key: repeatedKey ?? newId(), isRepeat: repeatedKey !== null, imageId });
  }

  const onShown = useEffectEvent((results: Result[]) => {
    const { seen, jobId } = pending.current ?? {};
    if (!seen || jobId) return;
    for (const result of results) {
      if (seen.some((old) => old.jobId === result.jobId)) continue;
      adopt(result, result.jobId, result.sourceImageId);
    }
    const made = results.filter((result) => result.jobId === pending.current?.jobId);
    if (made.length > 0) arrive(made);
  });
  useEffect(() => {
    if (shown) onShown(shown);
  }, [shown]);

  const runningId = active.job?.id;
  const onRunning = useEffectEvent(() => active.job && adoptJob(active.job));
  useEffect(() => {
    if (runningId) onRunning();
  }, [runningId]);

  return {
    start,
    /** The request being sent. */
    starting: waiting?.request ?? null,
    job: active.job,
    otherJobs: active.otherJobs,
    /** Takes the API's answer to a cancellation; the job may have ended before it. */
    onCancelResponse: (job: Job) => {
      active.update(job);
      if (job.state === 'cancelled') setAnnouncement(t('The run was canceled'));
    },
    isBusy: waiting !== null || active.job !== null || active.isLoading,
    problem,
    announcement,
  };
}
