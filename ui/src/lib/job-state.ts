import type { Job } from './api-types';

/** Whether nothing will become of a job any more than what has become of it. */
export function isFinal({ state }: Pick<Job, 'state'>): boolean {
  return state === 'done' || state === 'failed' || state === 'cancelled';
}

/** Fetched with the first run: a page that only shows results does without. */
export const loadFollowing = () => import('./job-events');
