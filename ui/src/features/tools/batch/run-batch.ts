import type { QueryClient } from '@tanstack/react-query';
import { ApiError, api, isProblem, sendFile, unwrap } from '@/lib/api-client';
import type { Image, Job, Result } from '@/lib/api-types';
import { isFinal } from '@/lib/job-state';
import { newId } from '@/lib/new-id';
import { queryKeys } from '@/lib/query-keys';
import { reasonOf } from '../reason-of';
import type { EditingTool } from '../tool';
import { type Batch, type BatchItem, type ItemState, isOver, updateItem, useBatches } from './batch';

/** Files on their way at once; a browser keeps few connections to one server, and others need some. */
const SENDERS = 2;
/** All runs are asked after with one call; an event stream for each would use up the connections. */
const LOOK_MS = 1_500;
const LOOK_MS_EACH = 40;
const HELD_SECONDS = 10;

const runners = new Map<string, BatchRunner>();

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
      if (this.items().some(({ state }) => state.kind === 'waiting' || state.kind === 'uploading')) {
        event.preventDefault();
      }
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

  retry = (item: BatchItem) => {
    // A run that ended is over; only a call that was lost may have one that its key finds again.
    const isLost = item.jobId === null;
    this.set(item, { state: { kind: 'waiting' }, jobId: null, key: isLost ? item.key : newId() });
    this.work();
  };

  cancelAll = async () => {
    this.stopping.abort();
    this.stopping = new AbortController();
    for (const item of this.items()) {
      if (item.state.kind === 'waiting') this.set(item, { state: { kind: 'cancelled' } });
    }
    const running = this.items().filter((item) => item.jobId && !isOver(item));
    await Promise.all(running.map(this.cancel));
  };

  private cancel = async (item: BatchItem) => {
    try {
      const path = { jobId: item.jobId ?? '' };
      this.take(item, unwrap(await api.DELETE('/api/jobs/{jobId}', { params: { path } })));
    } catch {
      // Followed on, it tells itself what has become of it.
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
        if (signal.aborted && !Array.isArray(answer)) await this.cancel({ ...item, jobId: answer.id });
        void this.follow();
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

  /** Too many calls in a minute, or too much in the queue, is no failure: it is asked again in time. */
  private async patiently<T>(item: BatchItem, signal: AbortSignal, call: () => Promise<T>): Promise<T> {
    for (;;) {
      try {
        return await call();
      } catch (error) {
        if (!isProblem(error, 429) && !isProblem(error, 503)) throw error;
        const seconds = error.retryAfterSeconds ?? HELD_SECONDS;
        this.set(item, { state: { kind: 'held', until: Date.now() + seconds * 1_000 } });
        await pause(seconds * 1_000, signal);
        this.set(item, { state: { kind: 'uploading', fraction: 1 } });
      }
    }
  }

  private fail(item: BatchItem, error: Error) {
    if (error.name === 'AbortError') return this.set(item, { state: { kind: 'cancelled' } });
    if (isProblem(error, 402)) return this.stopUnpaid(item);
    const isUsed = error instanceof ApiError && error.detail === 'Free Exists';
    const reason = isUsed ? this.tool.texts.freeExists : reasonOf(error);
    this.set(item, { state: { kind: 'failed', reason } });
  }

  /** Without credits for one there are none for the next: nothing more is sent, what runs goes on. */
  private stopUnpaid(item: BatchItem) {
    this.set(item, { state: { kind: 'unpaid' } });
    for (const other of this.items()) {
      if (other.state.kind === 'waiting') this.set(other, { state: { kind: 'unpaid' } });
    }
    this.refreshBalance();
  }

  /** Asks after everything that runs, until nothing does. */
  private async follow() {
    if (this.isFollowing) return;
    this.isFollowing = true;
    try {
      for (;;) {
        const running = this.items().filter((item) => item.jobId && !isOver(item));
        if (running.length === 0) return;
        if (!(await this.look(running))) return;
        await pause(Math.max(LOOK_MS, running.length * LOOK_MS_EACH));
      }
    } finally {
      this.isFollowing = false;
    }
  }

  /** False when there is nobody any more who could ask. */
  private async look(running: BatchItem[]): Promise<boolean> {
    try {
      const { jobs } = unwrap(await api.GET('/api/jobs'));
      for (const item of running) {
        const job = jobs.find(({ id }) => id === item.jobId);
        if (job) this.take(item, job);
        else await this.ask(item);
      }
      return true;
    } catch (error) {
      // Without a network the runs go on, and are asked after again.
      return !isProblem(error, 401);
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

function stateOf({ state, position, progress, etaSeconds, failure }: Job): ItemState {
  if (state === 'cancelled') return { kind: 'cancelled' };
  if (state === 'failed') return { kind: 'failed', reason: failure?.detail ?? 'The run failed' };
  if (state === 'queued')
    return { kind: 'queued', position: position ?? null, etaSeconds: etaSeconds ?? null };
  return {
    kind: 'running',
    fraction: progress?.fraction ?? null,
    count: progress?.count ?? null,
    etaSeconds: etaSeconds ?? null,
  };
}

function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms);
    signal?.addEventListener('abort', () => {
      clearTimeout(timer);
      reject(new DOMException('Aborted', 'AbortError'));
    });
  });
}
