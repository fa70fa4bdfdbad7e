import { ApiError, api, readEvents, unwrap } from '@/lib/api-client';
import type { Job } from '@/lib/api-types';
import { isFinal } from './job-state';
import { pause } from './pause';

const FIRST_BACKOFF_MS = 500;
const MAX_BACKOFF_MS = 8_000;
const POLL_MS = 2_000;
/** Broken event streams in a row before falling back to polling: a proxy may buffer or drop them all. */
const MAX_BROKEN_STREAMS = 3;

/**
 * Calls `onJob` with every change of a visitor's job until it is final. Uses its event stream, or polling if streams
 * fail. A user's jobs are followed by `RunFollower`.
 */
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
      for await (const event of readEvents(`/api/jobs/${encodeURIComponent(jobId)}/events`, signal)) {
        if (!event) continue;
        const job = JSON.parse(event.data) as Job;
        onJob(job);
        if (isFinal(job)) return;
      }
      failures += 1;
    } catch (error) {
      if (signal.aborted) return;
      // The job has been deleted: a retry cannot change that.
      if (error instanceof ApiError && [401, 403, 404].includes(error.status)) throw error;
      failures += 1;
    }
    await pause(Math.min(MAX_BACKOFF_MS, FIRST_BACKOFF_MS * 2 ** (failures - 1)), signal);
  }
}
