import { useState } from 'react';
import { magicFix } from '@/features/catalog/magic-fix';
import type { Shape } from '@/features/mask/marks';
import { useResults } from '@/features/results/get-results';
import { useRun } from '@/features/runs/use-run';
import { sendFile } from '@/lib/api-client';
import type { Job, Result } from '@/lib/api-types';
import { problemText } from '@/lib/failure-text';

type FixRequest = {
  /** Returns the image to fix; made the first time if the picture is a result. */
  imageIdOf: () => Promise<string>;
  shapes: Shape[];
  /** The number of marks that made the mask. */
  marks: number;
  mask: File;
  prompt: string;
  /** Whether nothing outside the mask may change; undefined leaves it to the API. */
  isExact: boolean | undefined;
};

/** The API's explanation of a refusal, and the field it belongs to. */
type FixRefusal = { field: 'prompt' | 'mask'; detail: string };

const fieldByCode: Record<string, FixRefusal['field']> = {
  prompt_not_possible: 'prompt',
  prompt_required: 'prompt',
  prompt_too_long: 'prompt',
  mask_invalid: 'mask',
  mask_empty: 'mask',
};

type FixEvents = {
  onDone: (results: Result[]) => void;
  /** The API has taken the run of these marks, on this image. */
  onAccepted: (jobId: string, imageId: string, marks: number) => void;
  /** The run was refused, failed or was canceled. */
  onUnsuccessful: () => void;
  onRefused: (refusal: FixRefusal) => void;
};

/** A run with a mask and a prompt. */
export function useFixRun(imageId: string, events: FixEvents) {
  const { onDone, onUnsuccessful } = events;
  const [refusal, setRefusal] = useState<FixRefusal | null>(null);

  const run = useRun<FixRequest>({
    tool: magicFix,
    imageId,
    shown: useResults(magicFix, imageId).data,
    onDone,
    isRetry: (request, earlier) =>
      request.prompt === earlier.prompt &&
      request.shapes === earlier.shapes &&
      request.isExact === earlier.isExact,
    // They have neither tiers nor factors.
    isRunOf: () => true,
    send: async ({ imageIdOf, mask, prompt, isExact }, idempotencyKey) => {
      const target = await imageIdOf();
      const { body } = await sendFile(`/api/magic-images/fix/${encodeURIComponent(target)}`, mask, {
        headers: { 'Idempotency-Key': idempotencyKey, Prefer: 'respond-async' },
        fields: isExact === undefined ? { prompt } : { prompt, exactMask: String(isExact) },
      });
      return JSON.parse(await body.text());
    },
    onAccepted: (answer, { marks }) => {
      const [jobId, target] = Array.isArray(answer)
        ? [answer[0]?.jobId, answer[0]?.sourceImageId]
        : [answer.id, answer.imageId];
      if (jobId && target) events.onAccepted(jobId, target, marks);
    },
    onRefused: ({ code, detail }) => {
      onUnsuccessful();
      const field = code ? fieldByCode[code] : undefined;
      if (!field) return false;
      const refused = { field, detail: problemText({ detail, code }) };
      setRefusal(refused);
      events.onRefused(refused);
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
    onCancelResponse: (job: Job) => {
      onUnsuccessful();
      run.onCancelResponse(job);
    },
    clearRefusal: () => setRefusal(null),
  };
}
