import type { Job } from '@/lib/api-types';

/** Returns true once the job can no longer change. */
export function isFinal({ state }: Pick<Job, 'state'>): boolean {
  return state === 'done' || state === 'failed' || state === 'cancelled';
}

/** Returns true if a job has ended without a result. */
export function hasEndedWithoutResult(job: Pick<Job, 'state' | 'results'>): boolean {
  return isFinal(job) && job.results.length === 0;
}

/** Whether a refusal or a failure is about the picture: the next run of the same picture would fail as well. */
export function isAboutPicture({ code }: { code?: string | null }): boolean {
  return code?.startsWith('image_') === true && code !== 'image_missing';
}

/**
 * Returns the estimated seconds left, or null while the estimate is unreliable: before the model runs, and before the
 * first of several tiles or steps is done.
 */
export function secondsLeft({ state, etaSeconds, progress }: EstimatedJob): number | null {
  if (state !== 'running') return etaSeconds ?? null;
  if (!progress || stagesBeforeModel.includes(progress.stage)) return null;
  const { count } = progress;
  return count && count.total > 1 && count.done < 1 ? null : (etaSeconds ?? null);
}

type EstimatedJob = Pick<Job, 'state' | 'etaSeconds' | 'progress'>;

const stagesBeforeModel = ['fetch', 'decode', 'preprocess'];
