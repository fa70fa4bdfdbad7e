import type { QueryClient } from '@tanstack/react-query';
import type { NavigateFunction } from 'react-router';
import type { EditingTool, ToolAction } from '@/features/catalog/tool';
import { cancelJob } from '@/features/runs/cancel-job';
import { activeJobsQuery } from '@/features/runs/get-active-jobs';
import { hasEndedWithoutResult, isAboutPicture, secondsLeft } from '@/features/runs/job-state';
import { followerOf } from '@/features/runs/run-follower';
import { isRunRefusal, runLimit } from '@/features/runs/run-request';
import { ApiError, api, isProblem, isVerdict, unwrap } from '@/lib/api-client';
import type { Image, Job, Result, ToolName } from '@/lib/api-types';
import { failureText, problemText } from '@/lib/failure-text';
import { ProviderUnavailable } from '@/lib/provider-unavailable';
import { queryKeys } from '@/lib/query-keys';
import { forgetUpload, sendImage } from '@/lib/send-image';
import { onSignOut } from '@/lib/sign-out-cleanup';
import { msg, t } from '@/lib/translate';
import { type PauseCause, withRetries } from '@/lib/with-retries';
import {
  type Batch,
  type BatchItem,
  type ItemState,
  isFinished,
  isUnsent,
  updateItem,
  useBatches,
} from './batch-store';
import { showBatchToast } from './batch-toast';
import { newRunKey } from './run-key';

/** Concurrent uploads. A browser opens few connections to one server, and the rest of the page needs some. */
const MAX_SENDERS = 2;
const SIGNED_OUT = msg('You were signed out before this run started');

const runners = new Map<ToolName, BatchRunner>();

onSignOut(() => {
  for (const runner of runners.values()) runner.stop();
});

useBatches.subscribe((batches, before) => {
  for (const [name, runner] of runners) {
    const batch = batches[name];
    if (batch && isInProgress(before[name]) && !isInProgress(batch)) runner.report(batch);
  }
});

/** Returns the runner of a tool's batch, which keeps working while another page is open. */
export function batchRunner(tool: EditingTool, queryClient: QueryClient): BatchRunner {
  const runner = runners.get(tool.name);
  if (runner?.queryClient === queryClient) return runner;
  const next = new BatchRunner(tool, queryClient);
  runners.set(tool.name, next);
  return next;
}

/** Sends the items of one tool's batch, and follows their jobs. All state is in the batch store. */
class BatchRunner {
  private senders = 0;
  private isOpen = false;
  private hasResumed = false;
  /** Opens another page; set once the batch has been shown or resumed. */
  private navigate: NavigateFunction | null = null;
  private stopping = new AbortController();
  private readonly follower: ReturnType<typeof followerOf>;

  constructor(
    private readonly tool: EditingTool,
    readonly queryClient: QueryClient,
  ) {
    this.follower = followerOf(queryClient);
    this.follower.watchers.add({ onJob: this.show, onDeleted: this.showDeleted, isShown: this.isShown });
    window.addEventListener('beforeunload', (event) => {
      // Started jobs continue without the page; unsent files would be lost.
      if (this.items().some(isUnsent)) event.preventDefault();
    });
  }

  /** Sends the waiting items. */
  work = () => {
    while (this.senders < MAX_SENDERS && this.nextItem()) {
      this.senders += 1;
      void this.sendItems().finally(() => {
        this.senders -= 1;
      });
    }
  };

  /** Continues after a reload: the jobs may have changed or ended in the meantime. */
  resume = async (navigate: NavigateFunction) => {
    if (this.hasResumed) return;
    this.hasResumed = true;
    this.navigate = navigate;
    this.work();
    // One after another, so that a large batch leaves connections to the rest of the page.
    for (const { id } of this.items()) {
      const { jobId, image } = this.items().find((item) => item.id === id && !isFinished(item)) ?? {};
      if (jobId) await this.follower.follow({ id: jobId, imageId: image?.id, tool: this.tool.name });
    }
  };

  retry = ({ id }: BatchItem) => {
    const item = this.items().find((one) => one.id === id);
    if (!item || !isFinished(item)) return;
    // A finished job needs a new key. Without a job, the call may have been lost after the API created one.
    const mayHaveJob = item.jobId === null;
    const key = mayHaveJob ? item.key : newRunKey();
    const isSent = mayHaveJob && item.isSent === true;
    this.set(item, { state: { kind: 'waiting' }, jobId: null, key, isRepeat: mayHaveJob, isSent });
    this.work();
  };

  /** Records that the page shows the batch. Returns a function for when it no longer does. */
  attend = (navigate: NavigateFunction) => {
    this.isOpen = true;
    this.navigate = navigate;
    return () => {
      this.isOpen = false;
    };
  };

  /** Tells people on another page how the batch ended. */
  report({ items }: Batch) {
    if (!this.isOpen && this.navigate) showBatchToast(this.tool, items, this.navigate);
  }

  /** Stops sending. Started jobs continue on the server. */
  stop = () => {
    this.stopping.abort();
    this.stopping = new AbortController();
  };

  /** Rejects if the request to cancel a job failed. */
  cancelAll = async () => {
    this.stop();
    for (const item of this.items()) {
      if (item.state.kind === 'waiting') this.set(item, { state: { kind: 'canceled' } });
    }
    const active = this.items().filter((item) => item.jobId && !isFinished(item));
    const answers = await Promise.allSettled(active.map(this.cancel));
    const rejected = answers.find(({ status }) => status === 'rejected');
    if (rejected) throw new Error('Not all jobs could be canceled');
  };

  private cancel = async (item: BatchItem) => {
    try {
      this.applyJob(item, await cancelJob(item.jobId ?? ''));
    } catch (error) {
      // 404: deleted, which the follower notices.
      if (!isProblem(error, 404)) throw error;
    }
  };

  private batch = (): Batch | undefined => useBatches.getState()[this.tool.name];
  private items = (): BatchItem[] => this.batch()?.items ?? [];
  private nextItem = () => this.items().find(({ state }) => state.kind === 'waiting');
  private now = ({ id }: BatchItem) => this.items().find((item) => item.id === id);
  private set = (item: BatchItem, change: Partial<BatchItem>) => updateItem(this.tool.name, item.id, change);

  /** Uploads one waiting item after another and starts its run. */
  private async sendItems() {
    for (;;) {
      const item = this.nextItem();
      const action = this.batch()?.action;
      if (!item || !action) return;
      const { signal } = this.stopping;
      this.set(item, { state: { kind: 'uploading', fraction: 0 } });
      try {
        const image = item.image ?? (await this.upload(item, signal));
        this.set(item, { image });
        const run = (key: string) =>
          this.withRetries(item, signal, () => this.send(item, action, image.id, key));
        const first = await run(item.key);
        const hasEnded =
          item.isRepeat && !this.now(item)?.jobId && !Array.isArray(first) && hasEndedWithoutResult(first);
        if (hasEnded) this.set(item, { isSent: false });
        // The user has asked for a run after the one whose answer was lost.
        await this.take(item, hasEnded ? await run(newRunKey()) : first, signal);
      } catch (error) {
        const jobId = this.now(item)?.jobId;
        if (jobId) {
          // Its job was seen although the answer was lost. The job shows its progress, unless the user canceled before
          // it was seen.
          if (signal.aborted) await this.cancel({ ...item, jobId }).catch(() => {});
          continue;
        }
        this.fail(item, error as Error);
        // The API may have started the run: then `show` cancels it.
        if (isAborted(error) && this.now(item)?.isSent) await this.lookAtActiveJobs();
      }
    }
  }

  /** Starts the run of an item, or asks for its job once that is known. */
  private async send(item: BatchItem, action: ToolAction, imageId: string, key: string) {
    const { jobId, isSent: wasSent = false } = this.now(item) ?? item;
    if (jobId) return unwrap(await api.GET('/api/jobs/{jobId}', { params: { path: { jobId } } }));
    this.set(item, { state: { kind: 'uploading', fraction: 1 }, key, isSent: true });
    try {
      // Canceling does not abort the request: a job created unseen could not be canceled.
      return unwrap(
        await api.POST(action.path, {
          signal: runLimit(),
          params: { query: { imageId }, header: { 'Idempotency-Key': key, Prefer: 'respond-async' } },
        }),
      );
    } catch (error) {
      const isRefused = isRunRefusal(error);
      // Without a token, the call was not sent.
      if (isRefused || error instanceof ProviderUnavailable) this.set(item, { isSent: wasSent });
      throw error;
    }
  }

  /** Handles the answer to the start of a run, and cancels the run if the user has canceled it in the meantime. */
  private async take(item: BatchItem, answer: Job | Result[], signal: AbortSignal) {
    if (Array.isArray(answer)) return this.complete(item, answer);
    this.applyJob(item, answer);
    // If the cancellation is lost, the list still shows the job.
    if (signal.aborted && this.batch()) await this.cancel({ ...item, jobId: answer.id }).catch(() => {});
  }

  private async lookAtActiveJobs() {
    // Offline, the event stream lists them once it is back.
    await this.queryClient.fetchQuery({ ...activeJobsQuery, staleTime: 0 }).catch(() => {});
  }

  private async upload(item: BatchItem, signal: AbortSignal): Promise<Image> {
    const { file } = item;
    if (!file) throw new Error('The file is no longer available');
    const onProgress = (fraction: number) => this.set(item, { state: { kind: 'uploading', fraction } });
    const image = await this.withRetries(item, signal, () => {
      onProgress(0);
      return sendImage(file, { signal, onProgress });
    });
    void this.queryClient.invalidateQueries({ queryKey: queryKeys.userImages });
    return image;
  }

  private withRetries<T>(item: BatchItem, signal: AbortSignal, call: () => Promise<T>): Promise<T> {
    const pause = (cause: PauseCause) => {
      if (!this.now(item)?.jobId) this.set(item, { state: { kind: 'paused', cause } });
    };
    return withRetries(signal, pause, call);
  }

  private fail(item: BatchItem, error: Error) {
    if (isAborted(error)) return this.set(item, { state: { kind: 'canceled' } });
    if (isProblem(error, 402)) return this.stopUnpaid(item);
    if (isProblem(error, 401)) return this.stopWaiting(item, { kind: 'failed', reason: t(SIGNED_OUT) });
    if (isProblem(error, 404)) this.set(item, prepareUpload(item));
    const isFreeUsed = error instanceof ApiError && error.detail === 'Free Exists';
    const reason = isFreeUsed ? t(this.tool.texts.freeExists) : failureText(error);
    this.set(item, { state: { kind: 'failed', reason, isFinal: isFreeUsed || isVerdict(error) } });
  }

  /** If the credits do not cover one item, they do not cover the next. Started jobs continue. */
  private stopUnpaid(item: BatchItem) {
    this.stopWaiting(item, { kind: 'unpaid' });
    this.refreshBalance();
  }

  private stopWaiting(item: BatchItem, state: ItemState) {
    this.set(item, { state });
    for (const other of this.items()) {
      if (other.state.kind === 'waiting') this.set(other, { state });
    }
  }

  /** Takes the API's answer to a call. */
  private applyJob(item: BatchItem, job: Job) {
    // The user has signed out.
    if (!this.batch()) return;
    this.set(item, { jobId: job.id });
    this.show(job);
    this.follower.update(job);
  }

  /** Takes the results of an API that answered without a job. */
  private complete(item: BatchItem, [result]: Result[]) {
    this.set(item, { jobId: result?.jobId ?? null, state: endState(result) });
    this.refreshBalance();
  }

  private show = (job: Job) => {
    const unseen = this.items().some(({ jobId }) => jobId === job.id)
      ? undefined
      : this.items().find((item) => this.isRunOf(item, job));
    // Not finished: the answer was only lost.
    if (unseen) this.set(unseen, { jobId: job.id, state: { kind: 'uploading', fraction: 1 } });
    if (unseen?.state.kind === 'canceled') void this.cancel({ ...unseen, jobId: job.id }).catch(() => {});
    const state = itemState(job);
    this.setOfJob(job.id, (item) =>
      job.failure?.code === 'image_missing' ? { ...prepareUpload(item), state } : { state },
    );
  };

  /** Whether a job is the run of an item whose answer is due or was lost. */
  private isRunOf({ jobId, isSent, key }: BatchItem, job: Job): boolean {
    return isSent === true && jobId === null && job.idempotencyKey === key;
  }

  /** Jobs are deleted together with their image. */
  private showDeleted = (jobId: string, error: ApiError) =>
    this.setOfJob(jobId, (item) => ({
      ...prepareUpload(item),
      state: { kind: 'failed', reason: problemText(error) },
    }));

  private isShown = ({ id }: Job) => this.items().some(({ jobId }) => jobId === id);

  private setOfJob(jobId: string, change: (item: BatchItem) => Partial<BatchItem>) {
    const item = this.items().find((one) => one.jobId === jobId);
    if (item && !isFinished(item)) this.set(item, change(item));
  }

  private refreshBalance() {
    void this.queryClient.invalidateQueries({ queryKey: queryKeys.user, exact: true });
  }
}

/** Lets an item whose image is gone be uploaded and run again. Returns what changes. */
function prepareUpload({ file }: BatchItem): Partial<BatchItem> {
  if (file) forgetUpload(file);
  return { image: null, key: newRunKey(), isSent: false };
}

function isInProgress(batch: Batch | undefined): boolean {
  return batch?.hasStarted === true && !batch.items.every(isFinished);
}

const isAborted = (error: unknown) => error instanceof Error && error.name === 'AbortError';

function itemState(job: Job): ItemState {
  const { state, position, progress, failure } = job;
  const etaSeconds = secondsLeft(job);
  if (state === 'done') return endState(job.results[0]);
  if (state === 'cancelled') return { kind: 'canceled' };
  if (state === 'failed')
    return {
      kind: 'failed',
      reason: failure ? problemText(failure) : t('The run failed'),
      isFinal: failure != null && isAboutPicture(failure),
    };
  if (state === 'queued') return { kind: 'queued', position: position ?? null, etaSeconds };
  return {
    kind: 'running',
    fraction: progress?.fraction ?? null,
    count: progress?.count ?? null,
    etaSeconds,
  };
}

function endState(result: Result | undefined): ItemState {
  return result ? { kind: 'done', result } : { kind: 'failed', reason: t('The result was deleted') };
}
