import type { QueryClient } from '@tanstack/react-query';
import type { Job } from '@/lib/api-types';
import { isFinal } from '@/lib/job-state';
import { runningKey } from '@/lib/query-keys';

/**
 * What the page hears of a run anyway, so that it is known as running at once, and not any more when it has ended.
 * How far it is is left to whoever asks for all of them: told here, it would put off the question after the others.
 */
export function noteRunning(queryClient: QueryClient, job: Job) {
  const known = queryClient.getQueryData<Job[]>(runningKey) ?? [];
  const isKnown = known.some(({ id }) => id === job.id);
  if (isKnown !== isFinal(job)) return;
  queryClient.setQueryData<Job[]>(
    runningKey,
    isKnown ? known.filter(({ id }) => id !== job.id) : [...known, job],
  );
}
