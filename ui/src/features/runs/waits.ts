import type { Job } from '@/lib/api-types';

type Wait = Exclude<NonNullable<Job['waitsFor']>, 'turn'>;

/** Why a queued job does not start although it may be its turn. */
export const waits: Record<Wait, { short: string; long: string }> = {
  retry: {
    short: 'Trying again soon',
    long: 'A problem on our side interrupted it. You pay only for a result.',
  },
  worker: {
    short: 'Waiting for a worker',
    long: 'No worker can run this tool right now. If none starts within 15 minutes, the run ends at no cost.',
  },
  storage: {
    short: 'Waiting for storage',
    long: 'We cannot reach your image right now. The run starts as soon as we can.',
  },
};
