import type { QueryClient } from '@tanstack/react-query';
import { type ApiError, api, isProblem, type StreamEvent, unwrap } from '@/lib/api-client';
import type { Account, Job, Result, ToolName } from '@/lib/api-types';
import { backoffMs } from '@/lib/pause';
import { activeJobsKey, queryKeys } from '@/lib/query-keys';
import { followAccount } from './follow-account';
import { activeJobsQuery } from './get-active-jobs';
import { isFinal } from './job-state';
import { leadTabs } from './lead-tabs';

const CHECK_MS = 3_000;
/** Without news for this long, the list of jobs is polled. */
const MAX_SILENCE_MS = 20_000;
/** A connection that slept with the phone never says that it is dead. */
const MAX_READ_MS = 15_000;

const resultsKey: Record<ToolName, (imageId: string) => readonly string[]> = {
  'remove-background': queryKeys.rmbgImages,
  upscale: queryKeys.upscaledImages,
  'magic-fix': queryKeys.magicImages,
};

type Listener = { imageId: string; tool: ToolName; onEnd: (job: Job) => void };

/** The known fields of a job that has yet to be read. */
type UnreadJob = Pick<Job, 'id' | 'imageId' | 'tool'>;

type Watcher = {
  /** May repeat the end of a job. */
  onJob: (job: Job) => void;
  /** `error` is the API's answer about a job that it does not have. */
  onDeleted: (jobId: string, error: ApiError) => void;
  /** Whether the watcher shows how the job ends, so that nothing else has to. */
  isShown: (job: Job) => boolean;
};

const followers = new WeakMap<QueryClient, RunFollower>();

export function followerOf(queryClient: QueryClient): RunFollower {
  const follower = followers.get(queryClient) ?? new RunFollower(queryClient);
  followers.set(queryClient, follower);
  return follower;
}

/**
 * Follows all runs of the account to their end, and keeps the cache up to date: the active jobs, the balance, the
 * results. One tab of the browser reads the account's event stream and passes it on; if it is silent, each tab polls.
 *
 * A job can disappear from the list without having ended: only its own state counts, however long that takes to read.
 */
class RunFollower {
  /** Hear of every state of every job. */
  readonly watchers = new Set<Watcher>();
  private active = new Map<string, Job>();
  private ended = new Map<string, Job>();
  /** Jobs that are not in the list and have yet to be read. */
  private missing = new Map<string, UnreadJob>();
  /** Jobs that are being read. */
  private reading = new Set<string>();
  /** Reads that failed in a row, and when to try again. */
  private failures = 0;
  private readAgainAt = 0;
  private listeners = new Set<Listener>();
  private heardAt = 0;
  /** Aborts when another tab leads; null before this one has. */
  private leading: AbortSignal | null = null;
  private onEndElsewhere: (job: Job) => void = () => {};

  constructor(private readonly queryClient: QueryClient) {}

  /** Follows until the returned function is called. In one tab, `onEndElsewhere` gets the ends that nobody listens for. */
  start(userId: string, onEndElsewhere: (job: Job) => void): () => void {
    const stop = new AbortController();
    const channel = new BroadcastChannel(`retouch-runs:${userId}`);
    channel.onmessage = ({ data }: MessageEvent<StreamEvent | null>) => this.hear(data);
    this.onEndElsewhere = onEndElsewhere;
    const unsubscribe = this.queryClient.getQueryCache().subscribe(({ type, query }) => {
      if (type === 'updated' && query.queryKey[0] === activeJobsKey[0])
        this.compare(query.state.data as Job[]);
    });
    const timer = setInterval(this.check, CHECK_MS);
    leadTabs(`retouch-runs:${userId}`, stop.signal, (leading) => {
      this.leading = leading;
      return followAccount(leading, (event) => {
        channel.postMessage(event);
        this.hear(event);
      });
    });
    return () => {
      stop.abort();
      channel.close();
      unsubscribe();
      clearInterval(timer);
      for (const jobs of [this.active, this.ended, this.missing]) jobs.clear();
    };
  }

  /** Calls `onEnd` for every run of a tool on an image that ends. Returns a function that stops this. */
  listen(listener: Listener): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** Tells the watchers of a job that may have started or ended before this page loaded. */
  async follow(job: UnreadJob) {
    const known = this.ended.get(job.id) ?? this.active.get(job.id);
    return known ? this.tell(known) : this.read(job);
  }

  /** Records a state of a job. */
  update = (job: Job) => {
    // A late answer.
    const end = this.ended.get(job.id);
    if (end) return this.tell(end);
    if (isFinal(job)) return this.end(job);
    const list = this.list();
    const isKnown = list.some(({ id }) => id === job.id);
    this.setList(isKnown ? list.map((one) => (one.id === job.id ? job : one)) : [...list, job]);
  };

  /** Adds the results of a run to the list of its image. */
  complete(imageId: string, tool: ToolName, results: Result[]) {
    this.refreshBalance(imageId);
    const list = { queryKey: resultsKey[tool](imageId), exact: true };
    const isListFetching = this.queryClient.isFetching(list) > 0;
    let isKnown = false;
    this.queryClient.setQueryData<Result[]>(list.queryKey, (old) => {
      isKnown = old !== undefined;
      return (
        old && [
          ...old.filter(({ imageId }) => !results.some((result) => result.imageId === imageId)),
          ...results,
        ]
      );
    });
    // The response on its way may predate the new results and would remove them again. A list that could not be loaded has
    // earlier results, too.
    if (isListFetching || !isKnown) {
      // A first fetch is not replaced by another one unless it is canceled.
      void this.queryClient.cancelQueries(list).then(() => this.queryClient.invalidateQueries(list));
    }
  }

  private list(): Job[] {
    return this.queryClient.getQueryData<Job[]>(activeJobsKey) ?? [];
  }

  private setList(jobs: Job[]) {
    this.queryClient.setQueryData<Job[]>(activeJobsKey, jobs);
  }

  private hear(event: StreamEvent | null) {
    this.heardAt = Date.now();
    if (!event) return;
    const data: unknown = JSON.parse(event.data);
    if (event.name === 'job') this.update(data as Job);
    if (event.name === 'user') this.queryClient.setQueryData(queryKeys.user, data);
    if (event.name === 'account') {
      const { user, jobs } = data as Account;
      this.queryClient.setQueryData(queryKeys.user, user);
      this.setList(jobs);
      // The server is back.
      this.readAgainAt = 0;
    }
  }

  private check = () => {
    if (Date.now() >= this.readAgainAt) for (const job of this.missing.values()) void this.read(job);
    const isSilent = Date.now() - this.heardAt > MAX_SILENCE_MS;
    if (!isSilent || this.active.size === 0) return;
    // Tried again at the next check.
    this.queryClient.fetchQuery({ ...activeJobsQuery, staleTime: 0 }).catch(() => {});
  };

  /** Looks after the jobs that a new list lacks. */
  private compare(jobs: Job[] = []) {
    // A list that was read before an end can arrive after it.
    const left = jobs.filter(({ id }) => !this.ended.has(id));
    if (left.length < jobs.length) return this.setList(left);
    const before = this.active;
    this.active = new Map(jobs.map((job) => [job.id, job]));
    for (const job of jobs) {
      this.missing.delete(job.id);
      if (before.get(job.id) !== job) this.tell(job);
    }
    for (const job of before.values()) if (!this.active.has(job.id)) void this.read(job);
  }

  private async read(job: UnreadJob) {
    this.missing.set(job.id, job);
    if (this.reading.has(job.id)) return;
    this.reading.add(job.id);
    try {
      const path = { jobId: job.id };
      const signal = AbortSignal.timeout(MAX_READ_MS);
      const now = unwrap(await api.GET('/api/jobs/{jobId}', { params: { path }, signal }));
      this.failures = 0;
      if (this.missing.delete(job.id)) this.update(now);
    } catch (error) {
      // Tried again by `check`, unless the job was deleted together with its image.
      if (!isProblem(error, 404)) return this.readLater(error);
      if (!this.missing.delete(job.id)) return;
      this.refresh(job);
      for (const { onDeleted } of this.watchers) onDeleted(job.id, error);
    } finally {
      this.reading.delete(job.id);
    }
  }

  /** Jobs that are read together fail together, which counts once. */
  private readLater(error: unknown) {
    if (Date.now() < this.readAgainAt) return;
    this.readAgainAt = Date.now() + backoffMs(error, this.failures);
    this.failures += 1;
  }

  private end(job: Job) {
    this.ended.set(job.id, job);
    this.active.delete(job.id);
    this.missing.delete(job.id);
    this.setList(this.list().filter(({ id }) => id !== job.id));
    this.tell(job);
    const listeners = [...this.listeners].filter(
      ({ imageId, tool }) => imageId === job.imageId && tool === job.tool,
    );
    if (listeners.length === 0) {
      this.refresh(job);
      if (this.isToReport(job)) this.onEndElsewhere(job);
      return;
    }
    if (job.imageId && job.state === 'done') this.complete(job.imageId, job.tool, job.results);
    else this.refreshBalance(job.imageId);
    for (const { onEnd } of listeners) onEnd(job);
  }

  private isToReport(job: Job): boolean {
    return this.leading?.aborted === false && ![...this.watchers].some(({ isShown }) => isShown(job));
  }

  private tell(job: Job) {
    for (const { onJob } of this.watchers) onJob(job);
  }

  private refresh({ imageId, tool }: UnreadJob) {
    this.refreshBalance(imageId);
    if (imageId) void this.queryClient.invalidateQueries({ queryKey: resultsKey[tool](imageId) });
  }

  /** Every end of a run debits or releases its hold, and may use the image's free run. */
  private refreshBalance(imageId: string | null | undefined) {
    void this.queryClient.invalidateQueries({ queryKey: queryKeys.user, exact: true });
    if (imageId) void this.queryClient.invalidateQueries({ queryKey: queryKeys.userImage(imageId) });
  }
}
