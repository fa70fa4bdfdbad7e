import type { Job } from '@/lib/api-types';
import { type Message, msg } from '@/lib/translate';

type Wait = Exclude<NonNullable<Job['waitsFor']>, 'turn'>;

/** Why a queued job does not start although it may be its turn. */
export const waits: Record<Wait, { short: Message; long: Message }> = {
  retry: {
    short: msg('Trying again soon'),
    long: msg('A problem on our side interrupted it. You pay only for a result.'),
  },
  worker: {
    short: msg('Waiting for a worker'),
    long: msg(
      'No worker can run this tool right now. If none starts within 15 minutes, the run ends at no cost.',
    ),
  },
  storage: {
    short: msg('Waiting for storage'),
    long: msg('We cannot reach your image right now. The run starts as soon as we can.'),
  },
};
