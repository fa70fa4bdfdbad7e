import { useMutation } from '@tanstack/react-query';
import { api, unwrap } from '@/lib/api-client';
import type { Job } from '@/lib/api-types';
import { notifyError } from '@/lib/notify';
import { t } from '@/lib/translate';

/** The API answers within 20 seconds. A run that is not canceled is charged, so a dead connection must not block it. */
const MAX_ANSWER_MS = 30_000;

export async function cancelJob(jobId: string): Promise<Job> {
  const signal = AbortSignal.timeout(MAX_ANSWER_MS);
  return unwrap(await api.DELETE('/api/jobs/{jobId}', { params: { path: { jobId } }, signal }));
}

export function useCancelJob(onResponse: (job: Job) => void) {
  return useMutation({
    mutationFn: cancelJob,
    onSuccess: onResponse,
    onError: () => notifyError(t('Failed to cancel the run, try again later')),
  });
}
