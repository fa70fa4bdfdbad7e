import { ApiError, api, readJobEvents, unwrap } from './api-client';
import type { Job } from './api-types';
import { isFinal } from './job-state';

const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 8_000;
const POLL_MS = 2_000;
/** Streams that broke in a row before the page stops trusting them: a proxy may swallow them all. */
const BROKEN_STREAMS = 3;

/** Tells `onJob` about every change of a job until it is final: by its event stream, else by asking. */
export async function followJob(
  jobId: string,
  signal: AbortSignal,
  onJob: (job: Job) => void,
): Promise<void> {
  let broken = 0;
  while (!signal.aborted) {
    try {
      if (broken >= BROKEN_STREAMS) {
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
      broken += 1;
    } catch (error) {
      if (signal.aborted) return;
      // The job is unknown or not ours: asking again cannot change that.
      if (error instanceof ApiError && [401, 403, 404].includes(error.status)) throw error;
      broken += 1;
    }
    await pause(Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (broken - 1)), signal);
  }
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const over = new AbortController();
    const end = () => {
      clearTimeout(timer);
      over.abort();
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal.addEventListener('abort', end, { signal: over.signal });
    // The network is back: no reason to wait any longer.
    window.addEventListener('online', end, { signal: over.signal });
  });
}
