import { useState } from 'react';
import { sendFile } from '@/lib/api-client';
import type { Job, Result } from '@/lib/api-types';
import { useRun } from '../run';
import { magicFix } from './magic-fix';
import type { Shape } from './mask/marks';

export type FixRequest = { shapes: Shape[]; mask: File; prompt: string };

/** A sentence of the API, at the place that it is about. */
export type FixRefusal = { about: 'prompt' | 'mask'; detail: string };

const places: Record<string, FixRefusal['about']> = {
  prompt_not_possible: 'prompt',
  prompt_required: 'prompt',
  prompt_too_long: 'prompt',
  mask_invalid: 'mask',
  mask_empty: 'mask',
};

type FixEvents = {
  onDone: (results: Result[]) => void;
  onAccepted: () => void;
  /** It came to nothing, after it was accepted or before. */
  onEnded: () => void;
  onRefused: (refusal: FixRefusal) => void;
};

/** A run with a mask and a prompt. */
export function useRunMagicFix(imageId: string, events: FixEvents) {
  const { onDone, onAccepted, onEnded } = events;
  const [refusal, setRefusal] = useState<FixRefusal | null>(null);

  const run = useRun<FixRequest>({
    tool: magicFix,
    imageId,
    onDone,
    isRepeat: (request, earlier) => request.prompt === earlier.prompt && request.shapes === earlier.shapes,
    send: async ({ mask, prompt }, key) => {
      const { body } = await sendFile(`/api/magic-images/fix/${encodeURIComponent(imageId)}`, mask, {
        headers: { 'Idempotency-Key': key, Prefer: 'respond-async' },
        fields: { prompt },
      });
      const answer: Job | Result[] = JSON.parse(await body.text());
      onAccepted();
      return answer;
    },
    onRefused: ({ code, detail }) => {
      onEnded();
      const about = code ? places[code] : undefined;
      if (!about) return false;
      setRefusal({ about, detail });
      events.onRefused({ about, detail });
      return true;
    },
  });

  return {
    ...run,
    refusal,
    start: (request: FixRequest) => {
      setRefusal(null);
      run.start(request);
    },
    onCancelled: (job: Job) => {
      onEnded();
      run.onCancelled(job);
    },
    forgetRefusal: () => setRefusal(null),
  };
}
