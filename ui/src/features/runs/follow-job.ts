import { ApiError, api, unwrap } from '@/lib/api-client';
import type { Job } from '@/lib/api-types';
import { isFinal } from './job-state';
import { pause } from './pause';

const POLL_MS = 1_000;
/** A connection that slept with the phone never says that it is dead. */
const MAX_SILENCE_MS = 15_000;

/** Calls `onJob` with a visitor's job until it is final. A user's jobs are followed by `RunFollower`. */
export async function followJob(
  jobId: string,
  signal: AbortSignal,
  onJob: (job: Job) => void,
): Promise<void> {
  while (!signal.aborted) {
    try {
      const request = api.GET('/api/jobs/{jobId}', { params: { path: { jobId } }, signal });
      const answer = await Promise.race([request, pause(MAX_SILENCE_MS, signal)]);
      if (signal.aborted) return;
      const job = answer && unwrap(answer);
      if (job) onJob(job);
      if (job && isFinal(job)) return;
    } catch (error) {
      // The job has been deleted: a retry cannot change that.
      if (error instanceof ApiError && [401, 403, 404].includes(error.status)) throw error;
    }
    await pause(POLL_MS, signal);
  }
}
