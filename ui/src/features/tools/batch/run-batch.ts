import type { QueryClient } from '@tanstack/react-query';
import { ApiError, api, isProblem, sendFile, unwrap } from '@/lib/api-client';
import type { Image, Job, Result } from '@/lib/api-types';
import { whenForgotten } from '@/lib/forget';
import { isFinal, secondsLeft } from '@/lib/job-state';
import { newId } from '@/lib/new-id';
import { untilOnline } from '@/lib/online';
import { queryKeys, runningKey } from '@/lib/query-keys';
import { reasonOf } from '../reason-of';
import type { EditingTool } from '../tool';
import { noteRunning } from '../under-way/note-running';
import {
  type Batch,
  type BatchItem,
  type ItemState,
  isOver,
  isUnsent,
  updateItem,
  useBatches,
} from './batch';

/** Files on their way at once; a browser keeps few connections to one server, and others need some. */
const SENDERS = 2;
/** All runs are asked after with one call; an event stream for each would use up the connections. */
const LOOK_MS = 1_500;
const LOOK_MS_EACH = 40;
const HELD_SECONDS = 10;
const SIGNED_OUT = 'You were signed out before it was started';

const runners = new Map<string, BatchRunner>();

whenForgotten(() => {
  for (const runner of runners.values()) runner.stop();
});

/** The one that works on a tool's batch, whichever page is looked at. */
export function runnerOf(tool: EditingTool, queryClient: QueryClient): BatchRunner {
  const runner = runners.get(tool.name);
  if (runner?.queryClient === queryClient) return runner;
  const next = new BatchRunner(tool, queryClient);
  runners.set(tool.name, next);
  return next;
}

/** What works on one tool's batch. It knows nothing that the batch does not: any number may come and go. */
class BatchRunner {
  private senders = 0;
  private isFollowing = false;
  private stopping = new AbortController();

  constructor(
    private readonly tool: EditingTool,
    readonly queryClient: QueryClient,
  ) {
    window.addEventListener('beforeunload', (event) => {
      // What was sent goes on without the page; what was not would be lost.
      if (this.items().some(isUnsent)) event.preventDefault();
    });
  }

  /** Goes on with whatever waits to be sent or to end. */
  work = () => {
    while (this.senders < SENDERS) {
      this.senders += 1;
      void this.send().finally(() => {
        this.senders -= 1;
      });
    }
    void this.follow();
  };

  retry = ({ id }: BatchItem) => {
    const item = this.items().find((one) => one.id === id);
    if (!item || !isOver(item)) return;
    // A run that ended is over; only a call that was lost may have one that its key finds again.
    const isLost = item.jobId === null;
    this.set(item, { state: { kind: 'waiting' }, jobId: null, key: isLost ? item.key : newId() });
    this.work();
  };

  /** Sends nothing more; what has begun goes on without the page. */
  stop = () => {
    this.stopping.abort();
    this.stopping = new AbortController();
  };

  /** Rejects when the server could not be told of all of them. */
  cancelAll = async () => {
    this.stop();
    for (const item of this.items()) {
      if (item.state.kind === 'waiting') this.set(item, { state: { kind: 'cancelled' } });
    }
    const running = this.items().filter((item) => item.jobId && !isOver(item));
    const answers = await Promise.allSettled(running.map(this.cancel));
    const refused = answers.find(({ status }) => status === 'rejected');
    if (refused) throw new Error('Not all could be cancelled');
  };

  private cancel = async (item: BatchItem) => {
    try {
      const path = { jobId: item.jobId ?? '' };
      this.take(item, unwrap(await api.DELETE('/api/jobs/{jobId}', { params: { path } })));
    } catch (error) {
      // Gone with its image. Of any other, whoever follows it hears what becomes of it.
      if (!isProblem(error, 404)) throw error;
    }
  };

  private batch = (): Batch | undefined => useBatches.getState()[this.tool.name];
  private items = (): BatchItem[] => this.batch()?.items ?? [];
  private set = (item: BatchItem, change: Partial<BatchItem>) => updateItem(this.tool.name, item.id, change);

  /** Uploads one file after the other and starts its run. */
  private async send() {
    for (;;) {
      const item = this.items().find(({ state }) => state.kind === 'waiting');
      const action = this.batch()?.action;
      if (!item || !action) return;
      const { signal } = this.stopping;
      this.set(item, { state: { kind: 'uploading', fraction: 0 } });
      try {
        const image = item.image ?? (await this.upload(item, signal));
        this.set(item, { image });
        // Not called off in the middle: a run that began unseen could not be cancelled.
        const answer = await this.patiently(item, signal, async () =>
          unwrap(
            await api.POST(action.path, {
              params: {
                query: { imageId: image.id },
                header: { 'Idempotency-Key': item.key, Prefer: 'respond-async' },
              },
            }),
          ),
        );
        if (Array.isArray(answer)) this.finish(item, answer[0]);
        else this.take(item, answer);
        void this.follow();
        const isUnwanted = signal.aborted && this.batch() && !Array.isArray(answer);
        // If that is lost, it is followed like any other, and tells itself what has become of it.
        if (isUnwanted) await this.cancel({ ...item, jobId: answer.id }).catch(() => {});
      } catch (error) {
        this.fail(item, error as Error);
      }
    }
  }

  private async upload(item: BatchItem, signal: AbortSignal): Promise<Image> {
    const { file } = item;
    if (!file) throw new Error('The file is gone');
    const { body } = await this.patiently(item, signal, () =>
      sendFile('/api/images/upload', file, {
        signal,
        onProgress: (fraction) => this.set(item, { state: { kind: 'uploading', fraction } }),
      }),
    );
    void this.queryClient.invalidateQueries({ queryKey: queryKeys.userImages });
    return JSON.parse(await body.text());
  }

  /** Too many calls in a minute, too much in the queue, or no network is no failure: it is asked again in time. */
  private async patiently<T>(item: BatchItem, signal: AbortSignal, call: () => Promise<T>): Promise<T> {
    for (;;) {
      signal.throwIfAborted();
      try {
        return await call();
      } catch (error) {
        if (isProblem(error, 429) || isProblem(error, 503)) {
          this.set(item, { state: { kind: 'held', by: 'server' } });
          await pause((error.retryAfterSeconds ?? HELD_SECONDS) * 1_000, signal);
        } else if (error instanceof TypeError && !navigator.onLine) {
          this.set(item, { state: { kind: 'held', by: 'network' } });
          await untilOnline(signal);
        } else {
          throw error;
        }
        this.set(item, { state: { kind: 'uploading', fraction: 1 } });
      }
    }
  }

  private fail(item: BatchItem, error: Error) {
    if (error.name === 'AbortError') return this.set(item, { state: { kind: 'cancelled' } });
    if (isProblem(error, 402)) return this.stopUnpaid(item);
    if (isProblem(error, 401)) return this.stopWaiting(item, { kind: 'failed', reason: SIGNED_OUT });
    const isUsed = error instanceof ApiError && error.detail === 'Free Exists';
    const reason = isUsed ? this.tool.texts.freeExists : reasonOf(error);
    this.set(item, { state: { kind: 'failed', reason } });
  }

  /** Without credits for one there are none for the next: nothing more is sent, what runs goes on. */
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

  /** Asks after everything that runs, until nothing does. */
  private async follow() {
    if (this.isFollowing) return;
    this.isFollowing = true;
    try {
      for (;;) {
        const running = this.items().filter((item) => item.jobId && !isOver(item));
        if (running.length === 0) return;
        const patience = await this.look(running);
        if (patience === null) return;
        await pause(Math.max(LOOK_MS, running.length * LOOK_MS_EACH, patience));
      }
    } finally {
      this.isFollowing = false;
    }
  }

  /** How long the server wants to be left alone at least; null when there is nobody any more who could ask. */
  private async look(running: BatchItem[]): Promise<number | null> {
    try {
      const { jobs } = unwrap(await api.GET('/api/jobs'));
      if (!this.batch()) return null;
      // The same question that the rest of the page has; answered here, it is asked once.
      this.queryClient.setQueryData<Job[]>(
        runningKey,
        jobs.filter((job) => !isFinal(job)),
      );
      for (const item of running) {
        // What was called off while the answer was on its way is not brought back by it.
        const isStillRunning = this.items().some((now) => now.jobId === item.jobId && !isOver(now));
        if (!isStillRunning) continue;
        const job = jobs.find(({ id }) => id === item.jobId);
        if (job) this.take(item, job);
        else await this.ask(item);
      }
      return 0;
    } catch (error) {
      if (isProblem(error, 401)) return null;
      // Without a network the runs go on, and are asked after again.
      return error instanceof ApiError ? (error.retryAfterSeconds ?? 0) * 1_000 : 0;
    }
  }

  /** What is not among the running ones any more has ended, or its image was deleted with it. */
  private async ask(item: BatchItem) {
    try {
      const path = { jobId: item.jobId ?? '' };
      this.take(item, unwrap(await api.GET('/api/jobs/{jobId}', { params: { path } })));
    } catch (error) {
      if (isProblem(error, 404)) this.set(item, { state: { kind: 'failed', reason: error.detail } });
    }
  }

  private take(item: BatchItem, job: Job) {
    // Whoever signed out meanwhile has no runs that could be shown.
    if (!this.batch()) return;
    noteRunning(this.queryClient, job);
    if (job.state === 'done') return this.finish({ ...item, jobId: job.id }, job.results[0]);
    this.set(item, { jobId: job.id, state: stateOf(job) });
    if (isFinal(job)) this.refreshBalance();
  }

  private finish(item: BatchItem, result: Result | undefined) {
    this.set(item, {
      jobId: item.jobId ?? result?.jobId ?? null,
      state: result ? { kind: 'done', result } : { kind: 'failed', reason: 'The result was deleted' },
    });
    this.refreshBalance();
  }

  private refreshBalance() {
    void this.queryClient.invalidateQueries({ queryKey: queryKeys.user, exact: true });
  }
}

function stateOf(job: Job): ItemState {
  const { state, position, progress, failure } = job;
  const etaSeconds = secondsLeft(job);
  if (state === 'cancelled') return { kind: 'cancelled' };
  if (state === 'failed') return { kind: 'failed', reason: failure?.detail ?? 'The run failed' };
  if (state === 'queued') return { kind: 'queued', position: position ?? null, etaSeconds };
  return {
    kind: 'running',
    fraction: progress?.fraction ?? null,
    count: progress?.count ?? null,
    etaSeconds,
  };
}

function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms);
    if (signal?.aborted) reject(signal.reason);
    signal?.addEventListener('abort', () => {
      clearTimeout(timer);
      reject(signal.reason);
    });
  });
}
