import { ApiError, api, readJobEvents, unwrap } from '@/lib/api-client';
import type { Job } from '@/lib/api-types';
import { isFinal } from './job-state';

const FIRST_BACKOFF_MS = 500;
const MAX_BACKOFF_MS = 8_000;
const POLL_MS = 2_000;
/** Broken event streams in a row before falling back to polling: a proxy may buffer or drop them all. */
const MAX_BROKEN_STREAMS = 3;

/** Calls `onJob` with every change of a job until it is final. Uses its event stream, or polling if streams fail. */
export async function followJob(
  jobId: string,
  signal: AbortSignal,
  onJob: (job: Job) => void,
): Promise<void> {
  let failures = 0;
  while (!signal.aborted) {
    try {
      if (failures >= MAX_BROKEN_STREAMS) {
        const job = unwrap(await api.GET('/api/jobs/{jobId}', { params: { path: { jobId } }, signal }));
        onJob(job);
        if (isFinal(job)) return;
        await pause(POLL_MS, signal);
        continue;
      }
      for await (const data of readJobEvents(jobId, signal)) {
        const job = JSON.parse(data) as Job;
        onJob(job);
        if (isFinal(job)) return;
      }
      failures += 1;
    } catch (error) {
      if (signal.aborted) return;
      // The job does not exist or belongs to someone else: a retry cannot change that.
      if (error instanceof ApiError && [401, 403, 404].includes(error.status)) throw error;
      failures += 1;
    }
    await pause(Math.min(MAX_BACKOFF_MS, FIRST_BACKOFF_MS * 2 ** (failures - 1)), signal);
  }
}

/** Resolves early when the signal aborts or the network returns. */
function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const listeners = new AbortController();
    const end = () => {
      clearTimeout(timer);
      listeners.abort();
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal.addEventListener('abort', end, { signal: listeners.signal });
    window.addEventListener('online', end, { signal: listeners.signal });
  });
}
