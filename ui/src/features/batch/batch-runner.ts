import type { QueryClient } from '@tanstack/react-query';
import type { EditingTool } from '@/features/catalog/tool';
import { isFinal, secondsLeft } from '@/features/runs/job-state';
import { followerOf } from '@/features/runs/run-follower';
import { ApiError, api, isProblem, sendFile, unwrap } from '@/lib/api-client';
import type { Image, Job, Result } from '@/lib/api-types';
import { failureText, problemText } from '@/lib/failure-text';
import { newId } from '@/lib/new-id';
import { activeJobsKey, queryKeys } from '@/lib/query-keys';
import { onSignOut } from '@/lib/sign-out-cleanup';
import { msg, t } from '@/lib/translate';
import { withRetries } from '@/lib/with-retries';
import {
  type Batch,
  type BatchItem,
  type ItemState,
  isFinished,
  isUnsent,
  updateItem,
  useBatches,
} from './batch-store';

/** Concurrent uploads. A browser opens few connections to one server, and the rest of the page needs some. */
const MAX_SENDERS = 2;
/** One poll covers all jobs; an event stream per job would use up the connections. */
const MIN_POLL_MS = 1_500;
const POLL_MS_PER_JOB = 40;
const SIGNED_OUT = msg('You were signed out before this run started');

const runners = new Map<string, BatchRunner>();

onSignOut(() => {
  for (const runner of runners.values()) runner.stop();
});

/** Returns the runner of a tool's batch, which keeps working while another page is open. */
export function batchRunner(tool: EditingTool, queryClient: QueryClient): BatchRunner {
  const runner = runners.get(tool.name);
  if (runner?.queryClient === queryClient) return runner;
  const next = new BatchRunner(tool, queryClient);
  runners.set(tool.name, next);
  return next;
}

/** Sends and follows the items of one tool's batch. All state is in the batch store. */
class BatchRunner {
  private senders = 0;
  private isPolling = false;
  private stopping = new AbortController();

  constructor(
    private readonly tool: EditingTool,
    readonly queryClient: QueryClient,
  ) {
    window.addEventListener('beforeunload', (event) => {
      // Started jobs continue without the page; unsent files would be lost.
      if (this.items().some(isUnsent)) event.preventDefault();
    });
  }

  /** Sends the waiting items and follows the running ones. */
  work = () => {
    while (this.senders < MAX_SENDERS) {
      this.senders += 1;
      void this.sendItems().finally(() => {
        this.senders -= 1;
      });
    }
    void this.pollJobs();
  };

  retry = ({ id }: BatchItem) => {
    const item = this.items().find((one) => one.id === id);
    if (!item || !isFinished(item)) return;
    // A finished job needs a new key. Without a job, the call may have been lost after the API created one.
    const mayHaveJob = item.jobId === null;
    this.set(item, { state: { kind: 'waiting' }, jobId: null, key: mayHaveJob ? item.key : newId() });
    this.work();
  };

  /** Its list shows how each run ends, so no toast needs to. Returns a function that stops this. */
  keepQuiet = () =>
    followerOf(this.queryClient).keepQuiet(
      ({ tool, imageId }) =>
        tool === this.tool.name && this.items().some(({ image }) => image?.id === imageId),
    );

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
      const path = { jobId: item.jobId ?? '' };
      this.applyJob(item, unwrap(await api.DELETE('/api/jobs/{jobId}', { params: { path } })));
    } catch (error) {
      // 404: deleted with its image; polling reports it.
      if (!isProblem(error, 404)) throw error;
    }
  };

  private batch = (): Batch | undefined => useBatches.getState()[this.tool.name];
  private items = (): BatchItem[] => this.batch()?.items ?? [];
  private set = (item: BatchItem, change: Partial<BatchItem>) => updateItem(this.tool.name, item.id, change);

  /** Uploads one waiting item after another and starts its run. */
  private async sendItems() {
    for (;;) {
      const item = this.items().find(({ state }) => state.kind === 'waiting');
      const action = this.batch()?.action;
      if (!item || !action) return;
      const { signal } = this.stopping;
      this.set(item, { state: { kind: 'uploading', fraction: 0 } });
      try {
        const image = item.image ?? (await this.upload(item, signal));
        this.set(item, { image });
        // The request itself is not aborted: a job created unseen could not be canceled.
        const answer = await this.withRetries(item, signal, async () => {
          this.set(item, { state: { kind: 'uploading', fraction: 1 } });
          return unwrap(
            await api.POST(action.path, {
              params: {
                query: { imageId: image.id },
                header: { 'Idempotency-Key': item.key, Prefer: 'respond-async' },
              },
            }),
          );
        });
        if (Array.isArray(answer)) this.finish(item, answer[0]);
        else this.applyJob(item, answer);
        void this.pollJobs();
        const isUnwanted = signal.aborted && this.batch() && !Array.isArray(answer);
        // If the cancellation is lost, polling shows what the job does.
        if (isUnwanted) await this.cancel({ ...item, jobId: answer.id }).catch(() => {});
      } catch (error) {
        this.fail(item, error as Error);
      }
    }
  }

  private async upload(item: BatchItem, signal: AbortSignal): Promise<Image> {
    const { file } = item;
    if (!file) throw new Error('The file is no longer available');
    const onProgress = (fraction: number) => this.set(item, { state: { kind: 'uploading', fraction } });
    const { body } = await this.withRetries(item, signal, () => {
      onProgress(0);
      return sendFile('/api/images/upload', file, { signal, onProgress });
    });
    void this.queryClient.invalidateQueries({ queryKey: queryKeys.userImages });
    return JSON.parse(await body.text());
  }

  private withRetries<T>(item: BatchItem, signal: AbortSignal, call: () => Promise<T>): Promise<T> {
    return withRetries(signal, (cause) => this.set(item, { state: { kind: 'paused', cause } }), call);
  }

  private fail(item: BatchItem, error: Error) {
    if (error.name === 'AbortError') return this.set(item, { state: { kind: 'canceled' } });
    if (isProblem(error, 402)) return this.stopUnpaid(item);
    if (isProblem(error, 401)) return this.stopWaiting(item, { kind: 'failed', reason: t(SIGNED_OUT) });
    const isFreeUsed = error instanceof ApiError && error.detail === 'Free Exists';
    const reason = isFreeUsed ? t(this.tool.texts.freeExists) : failureText(error);
    this.set(item, { state: { kind: 'failed', reason } });
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

  /** Polls the active jobs until there are none. */
  private async pollJobs() {
    if (this.isPolling) return;
    this.isPolling = true;
    try {
      for (;;) {
        const active = this.items().filter((item) => item.jobId && !isFinished(item));
        if (active.length === 0) return;
        const minDelayMs = await this.poll(active);
        if (minDelayMs === null) return;
        const delayMs = Math.max(MIN_POLL_MS, active.length * POLL_MS_PER_JOB, minDelayMs);
        await new Promise((resolve) => setTimeout(resolve, delayMs));
      }
    } finally {
      this.isPolling = false;
    }
  }

  /** Polls once. Returns the server's minimum delay before the next poll, or null if the user has signed out. */
  private async poll(active: BatchItem[]): Promise<number | null> {
    try {
      const { jobs } = unwrap(await api.GET('/api/jobs'));
      if (!this.batch()) return null;
      // Shares the answer with `useActiveJobs`, which then need not send the same request.
      this.queryClient.setQueryData<Job[]>(
        activeJobsKey,
        jobs.filter((job) => !isFinal(job)),
      );
      for (const item of active) {
        // The user may have canceled it during the request.
        const isStillActive = this.items().some((now) => now.jobId === item.jobId && !isFinished(now));
        if (!isStillActive) continue;
        const job = jobs.find(({ id }) => id === item.jobId);
        if (job) this.applyJob(item, job);
        else await this.readJob(item);
      }
      return 0;
    } catch (error) {
      if (isProblem(error, 401)) return null;
      // A lost connection does not stop the jobs; the next poll catches up.
      return error instanceof ApiError ? (error.retryAfterSeconds ?? 0) * 1_000 : 0;
    }
  }

  /** Reads a job that is no longer active: it has ended, or was deleted with its image. */
  private async readJob(item: BatchItem) {
    try {
      const path = { jobId: item.jobId ?? '' };
      this.applyJob(item, unwrap(await api.GET('/api/jobs/{jobId}', { params: { path } })));
    } catch (error) {
      if (isProblem(error, 404)) this.set(item, { state: { kind: 'failed', reason: problemText(error) } });
    }
  }

  private applyJob(item: BatchItem, job: Job) {
    // The user has signed out.
    if (!this.batch()) return;
    followerOf(this.queryClient).update(job);
    if (job.state === 'done') return this.finish({ ...item, jobId: job.id }, job.results[0]);
    this.set(item, { jobId: job.id, state: itemState(job) });
    if (isFinal(job)) this.refreshBalance();
  }

  private finish(item: BatchItem, result: Result | undefined) {
    this.set(item, {
      jobId: item.jobId ?? result?.jobId ?? null,
      state: result ? { kind: 'done', result } : { kind: 'failed', reason: t('The result was deleted') },
    });
    this.refreshBalance();
  }

  private refreshBalance() {
    void this.queryClient.invalidateQueries({ queryKey: queryKeys.user, exact: true });
  }
}

function itemState(job: Job): ItemState {
  const { state, position, progress, failure } = job;
  const etaSeconds = secondsLeft(job);
  if (state === 'cancelled') return { kind: 'canceled' };
  if (state === 'failed')
    return { kind: 'failed', reason: failure ? problemText(failure) : t('The run failed') };
  if (state === 'queued') return { kind: 'queued', position: position ?? null, etaSeconds };
  return {
    kind: 'running',
    fraction: progress?.fraction ?? null,
    count: progress?.count ?? null,
    etaSeconds,
  };
}
