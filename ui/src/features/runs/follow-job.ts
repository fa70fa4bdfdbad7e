import { ApiError, api, unwrap } from '@/lib/api-client';
import type { Job } from '@/lib/api-types';
import { backoffMs, pause } from '@/lib/pause';
import { connect } from './connect';
import { isFinal } from './job-state';

const POLL_MS = 1_000;
const MAX_SILENCE_MS = 15_000;

/** Calls `onJob` with a visitor's job until it is final. A user's jobs are followed by `RunFollower`. */
export async function followJob(
  jobId: string,
  signal: AbortSignal,
  onJob: (job: Job) => void,
): Promise<void> {
  let failures = 0;
  while (!signal.aborted) {
    let pauseMs = POLL_MS;
    const connection = connect(signal, MAX_SILENCE_MS);
    try {
      const request = { params: { path: { jobId } }, signal: connection.signal };
      const job = unwrap(await api.GET('/api/jobs/{jobId}', request));
      if (signal.aborted) return;
      failures = 0;
      onJob(job);
      if (isFinal(job)) return;
    } catch (error) {
      // The job has been deleted: a retry cannot change that.
      if (error instanceof ApiError && [401, 403, 404].includes(error.status)) throw error;
      pauseMs = backoffMs(error, failures);
      failures += 1;
    } finally {
      connection.end();
    }
    await pause(pauseMs, signal);
  }
}
