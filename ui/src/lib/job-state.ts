import type { Job } from './api-types';

/** Whether nothing will become of a job any more than what has become of it. */
export function isFinal({ state }: Pick<Job, 'state'>): boolean {
  return state === 'done' || state === 'failed' || state === 'cancelled';
}

/**
 * The seconds that are left, as soon as the run itself has shown how fast it is: what is guessed before the model is at
 * work, or before its first part of several is done, can be far off.
 */
export function secondsLeft({ state, etaSeconds, progress }: EstimatedJob): number | null {
  if (state !== 'running') return etaSeconds ?? null;
  if (!progress || early.includes(progress.stage)) return null;
  const { count } = progress;
  return count && count.total > 1 && count.done < 1 ? null : (etaSeconds ?? null);
}

type EstimatedJob = Pick<Job, 'state' | 'etaSeconds' | 'progress'>;

const early = ['fetch', 'decode', 'preprocess'];

/** Fetched with the first run: a page that only shows results does without. */
export const loadFollowing = () => import('./job-events');
