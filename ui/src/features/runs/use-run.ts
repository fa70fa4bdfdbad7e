import { useQueryClient } from '@tanstack/react-query';
import { useEffect, useEffectEvent, useLayoutEffect, useState } from 'react';
import type { Tool } from '@/features/catalog/tool';
import { isProblem } from '@/lib/api-client';
import type { Job, Result } from '@/lib/api-types';
import { failureText, problemText } from '@/lib/failure-text';
import { newId } from '@/lib/new-id';
import { closeToast, notify } from '@/lib/notify';
import { queryKeys } from '@/lib/query-keys';
import { t } from '@/lib/translate';
import { resultReady } from './announcements';
import {
  type Attempt,
  addAttempt,
  changeAttempt,
  forgetAttempt,
  keyOf,
  type RunProblem,
  setKey,
  useAttempts,
} from './attempts';
import { usePreconditionCheck } from './check-preconditions';
import { hasEndedWithoutResult, isAboutPicture } from './job-state';
import { isRunRefusal } from './run-request';
import { useImageRuns } from './use-image-runs';

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
  /** Returns a name that only equal requests have: the second one retries the first. */
  nameOf: (request: Request) => string;
  /** Whether a request starts runs like this one. */
  isRunOf: (request: Request, run: Run) => boolean;
  /** The API has started the run of a request. */
  onStarted?: (jobId: string, imageId: string, request: Request) => void;
  onDone: (results: Result[]) => void;
  /** Handles a refusal that the tool explains itself; returns false to show it in the usual way. */
  onRefused: (refusal: Refusal, request: Request | null) => boolean;
};

/** Handles the outcomes of attempts. */
type Page = {
  isOwn(attempt: Attempt): boolean;
  onAnswer(attempt: Attempt, answer: Job | Result[]): void;
  onError(attempt: Attempt, error: Error): void;
};

/** The page with a `useRun` that people see. */
let shownPage: Page | null = null;

const isWaiting = ({ isDue, jobId }: Attempt) => isDue && !jobId;

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
  const checkPreconditions = usePreconditionCheck(imageId);
  const queryClient = useQueryClient();

  const isOwn = (attempt: Attempt): attempt is Attempt<Request> =>
    attempt.tool === tool.name && (attempt.pageImageId === imageId || attempt.imageId === imageId);
  const ownAttempts = () => useAttempts.getState().filter(isOwn);
  /** The attempt that waits for its answer, or for its run to show up. */
  const waiting = useAttempts((all) => all.filter(isOwn).find(isWaiting));

  function fail(detail: string, cause: { code?: string | null } = {}): RunProblem {
    // A toast with the id of a closing toast would not be shown.
    const failure: RunProblem = { kind: 'refused', detail, toastId: newId() };
    // Another attempt, which the tool's text may propose, does not help a picture that cannot be used.
    void notify('error', isAboutPicture(cause) ? detail : t(tool.texts.runFailed), failure.toastId);
    setProblem(failure);
    return failure;
  }

  function takeBack(failure: RunProblem) {
    setProblem((current) => (current === failure ? null : current));
    if (failure.kind === 'refused') void closeToast(failure.toastId);
  }

  function arrive(results: Result[]) {
    setAnnouncement(t(resultReady));
    options.onDone(results);
  }

  function setJob(attempt: Attempt<Request>, jobId: string, hasFailed: boolean) {
    if (attempt.jobId === jobId) return;
    changeAttempt(attempt, { jobId });
    if (attempt.lost) takeBack(attempt.lost);
    if (!hasFailed) options.onStarted?.(jobId, attempt.imageId, attempt.request);
  }

  /** Takes a run for that of a request whose answer is due or was lost, unless they differ. */
  function adopt(run: Run, jobId: string, isOfRequest: (attempt: Attempt) => boolean, hasFailed = false) {
    const attempts = ownAttempts();
    if (attempts.some((attempt) => attempt.jobId === jobId)) return false;
    const attempt = attempts.find((one) => !one.jobId && isOfRequest(one) && isRunOf(one.request, run));
    if (attempt) setJob(attempt, jobId, hasFailed);
    return attempt !== undefined;
  }

  function adoptJob(job: Job) {
    // Canceled jobs have lost their key.
    const isOfRequest = ({ key, imageId }: Attempt) =>
      imageId === job.imageId && (!job.idempotencyKey || job.idempotencyKey === key);
    adopt(job, job.id, isOfRequest, hasEndedWithoutResult(job));
  }

  const active = useImageRuns({
    imageId,
    targetId,
    tool: tool.name,
    onEnd: (job) => {
      adoptJob(job);
      if (job.results.length > 0) return arrive(job.results);
      const { state, failure } = job;
      const isExplained = failure && options.onRefused(failure, null);
      if (state === 'failed' && !isExplained) fail(failure ? problemText(failure) : '', failure ?? {});
    },
  });

  function onAnswer(attempt: Attempt<Request>, answer: Job | Result[]) {
    forgetAttempt(attempt);
    const job = Array.isArray(answer) ? null : answer;
    const hasFailed = job !== null && hasEndedWithoutResult(job);
    const jobId = Array.isArray(answer) ? answer[0]?.jobId : answer.id;
    const isKnown = job && (hasFailed || attempt.seen?.some((result) => result.jobId === jobId));
    // The user has asked for a run after the one whose answer was lost, unless that one has ended since.
    if (attempt.isRepeat && isKnown && !attempt.jobId) return submit(attempt.request);
    if (jobId) setJob(attempt, jobId, hasFailed);
    if (job) return active.update(job);
    active.complete(attempt.imageId, answer as Result[]);
    arrive(answer as Result[]);
  }

  function onError(attempt: Attempt<Request>, error: Error) {
    const isRefused = isRunRefusal(error);
    // Any other refusal of a repeat may have come before the API looked for the key's job.
    const isOver = isRefused && (!attempt.isRepeat || error.code === 'idempotency_key_reused');
    const isKept = !isOver && keyOf(attempt.name) === attempt.key;
    if (isKept) changeAttempt(attempt, { isDue: false });
    else forgetAttempt(attempt);
    // The page shows the run, or how it ended.
    if (!isRefused && attempt.jobId) return;
    if (isProblem(error, 402)) return setProblem({ kind: 'not-enough-credits' });
    // The image or the result was deleted elsewhere; the page says which.
    if (isProblem(error, 404)) {
      void queryClient.invalidateQueries({ queryKey: queryKeys.userImage(imageId) });
      void queryClient.invalidateQueries({ queryKey: tool.resultsKey(imageId) });
    }
    if (isRefused && options.onRefused(error, attempt.request)) return;
    const failure = fail(failureText(error), isRefused ? error : {});
    if (!isRefused && isKept) attempt.lost = failure;
  }

  const page: Page = { isOwn, onAnswer, onError };
  useLayoutEffect(() => {
    shownPage = page;
    return () => {
      shownPage = null;
    };
  });

  function start(request: Request) {
    if (ownAttempts().some(isWaiting) || active.job) return;
    if (problem) takeBack(problem);
    setAnnouncement('');
    // A request that may have reached the API keeps its idempotency key when it is repeated.
    submit(request, keyOf(options.nameOf(request)));
  }

  function submit(request: Request, repeatedKey?: string) {
    const attempt: Attempt<Request> = {
      request,
      name: options.nameOf(request),
      key: repeatedKey ?? newId(),
      isRepeat: repeatedKey !== undefined,
      tool: tool.name,
      pageImageId: imageId,
      imageId,
      isDue: true,
    };
    addAttempt(attempt);
    // Until then, the user may have left the page and come back to it.
    const pageOf = () => (shownPage?.isOwn(attempt) ? shownPage : page);
    send(attempt).then(
      (answer) => pageOf().onAnswer(attempt, answer),
      (error) => pageOf().onError(attempt, error),
    );
  }

  async function send(attempt: Attempt<Request>) {
    await checkPreconditions();
    attempt.imageId = (await options.targetOf?.(attempt.request)) ?? imageId;
    attempt.seen = queryClient.getQueryData(tool.resultsKey(attempt.imageId));
    setKey(attempt.name, attempt.key);
    return options.send(attempt.request, attempt.key, attempt.imageId);
  }

  const onShown = useEffectEvent((results: Result[]) => {
    const made = results.filter((result) =>
      adopt(
        result,
        result.jobId,
        ({ imageId, seen }) =>
          imageId === result.sourceImageId && seen?.some(({ jobId }) => jobId === result.jobId) === false,
      ),
    );
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
    isBusy: waiting !== undefined || active.job !== null || active.isLoading,
    problem,
    announcement,
  };
}
