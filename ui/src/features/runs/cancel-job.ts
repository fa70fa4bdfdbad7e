import { useMutation } from '@tanstack/react-query';
import { api, unwrap } from '@/lib/api-client';
import type { Job } from '@/lib/api-types';
import { notifyError } from '@/lib/notify';
import { t } from '@/lib/translate';

export function useCancelJob(onResponse: (job: Job) => void) {
  return useMutation({
    mutationFn: async (jobId: string) =>
      unwrap(await api.DELETE('/api/jobs/{jobId}', { params: { path: { jobId } } })),
    onSuccess: onResponse,
    onError: () => notifyError(t('Failed to cancel the run, try again later')),
  });
}
