/** Loads the code that follows a job. Only a run needs it, not a page that shows results. */
export const loadFollowJob = () => import('./follow-job');
