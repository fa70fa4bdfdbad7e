import { useState } from 'react';
import { magicFix } from '@/features/catalog/magic-fix';
import type { Mark, Shape } from '@/features/mask/marks';
import { useResults } from '@/features/results/get-results';
import { runLimit } from '@/features/runs/run-request';
import { useRun } from '@/features/runs/use-run';
import { sendFile } from '@/lib/api-client';
import type { Result } from '@/lib/api-types';
import { problemText } from '@/lib/failure-text';
import { checksum } from '@/lib/png';

type FixRequest = {
  /** The picture that the marks belong to. */
  picture: string;
  /** Returns the image to fix; made the first time if the picture is a result. */
  imageIdOf: () => Promise<string>;
  shapes: Shape[];
  /** The marks that made the mask. */
  marks: Mark[];
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
  /** The API has started the run of these marks, on this image. */
  onStarted: (jobId: string, imageId: string, request: FixRequest) => void;
  onRefused: (refusal: FixRefusal) => void;
};

/** The API stores some white space differently. */
const wordsOf = (prompt: string | null | undefined) => prompt?.trim().replace(/\s+/g, ' ');

/** A run with a mask and a prompt. `targetId` is the image that a shown result has become, if it has. */
export function useFixRun(imageId: string, targetId: string | null, events: FixEvents) {
  const [refusal, setRefusal] = useState<FixRefusal | null>(null);

  const run = useRun<FixRequest>({
    ...events,
    tool: magicFix,
    imageId,
    targetId,
    shown: useResults(magicFix, imageId).data,
    targetOf: ({ imageIdOf }) => imageIdOf(),
    nameOf: ({ picture, prompt, isExact, shapes }) =>
      `${picture} ${checksum(new TextEncoder().encode(JSON.stringify([prompt, isExact, shapes])))}`,
    isRunOf: (request, { prompt }) => wordsOf(request.prompt) === wordsOf(prompt),
    send: async ({ mask, prompt, isExact }, idempotencyKey, target) => {
      const { body } = await sendFile(`/api/magic-images/fix/${encodeURIComponent(target)}`, mask, {
        signal: runLimit(),
        headers: { 'Idempotency-Key': idempotencyKey, Prefer: 'respond-async' },
        fields: isExact === undefined ? { prompt } : { prompt, exactMask: String(isExact) },
      });
      return JSON.parse(await body.text());
    },
    onRefused: ({ code, detail }) => {
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
    clearRefusal: () => setRefusal(null),
  };
}
