import { useMutation } from '@tanstack/react-query';
import { useRef, useState } from 'react';
import type { EditingTool } from '@/features/catalog/tool';
import { isFinal } from '@/features/runs/job-state';
import { loadFollowJob } from '@/features/runs/load-follow-job';
import { ApiError, isProblem, sendFile } from '@/lib/api-client';
import type { Job, Result } from '@/lib/api-types';
import { failureText } from '@/lib/failure-text';
import { readImageSize } from '@/lib/image-size';
import { notifyError } from '@/lib/notify';

/** The full result or, if the API answered with the picture itself, only what the picture shows. */
export type FreeResult = Pick<Result, 'url' | 'width' | 'height'> & Partial<Result>;

/** A visitor's run: uploads the file, follows the job without a token, and returns one picture. */
export function useFreeRun(tool: EditingTool) {
  const [uploadFraction, setUploadFraction] = useState<number | null>(null);
  const [job, setJob] = useState<Job | null>(null);
  const [isRefused, setRefused] = useState(false);
  const current = useRef<AbortController | null>(null);

  const run = useMutation({
    mutationFn: async (file: File): Promise<FreeResult> => {
      const stop = new AbortController();
      current.current = stop;
      setJob(null);
      setUploadFraction(0);
      void loadFollowJob().catch(() => {});
      const { status, body } = await sendFile(tool.visitorPath, file, {
        onProgress: setUploadFraction,
        signal: stop.signal,
        headers: { Prefer: 'respond-async' },
      });
      setUploadFraction(null);
      if (status !== 202) return measure(URL.createObjectURL(body), tool.free.factor);
      return resultOf(await follow(JSON.parse(await body.text()) as Job, stop.signal, setJob));
    },
    onError: (error) => {
      if (error.name === 'AbortError') return;
      if (isProblem(error, 409, 'Free Exists')) {
        setRefused(true);
        return notifyError(tool.texts.freeExists);
      }
      notifyError(tool.texts.visitorRunFailed);
    },
    onSettled: () => {
      setUploadFraction(null);
      setJob(null);
    },
  });

  return {
    start: run.mutate,
    isBusy: run.isPending,
    uploadFraction,
    job,
    result: run.data ?? null,
    isRefused,
    advice: run.error && !isRefused ? adviceFor(run.error) : null,
    reset: () => {
      current.current?.abort();
      run.reset();
      setRefused(false);
    },
  };
}

/** Returns the job's final state. */
async function follow(first: Job, signal: AbortSignal, onJob: (job: Job) => void): Promise<Job> {
  let last = first;
  onJob(first);
  if (!isFinal(first)) {
    const { followJob } = await loadFollowJob();
    await followJob(first.id, signal, (job) => {
      last = job;
      onJob(job);
    });
  }
  if (signal.aborted) throw new DOMException('Aborted', 'AbortError');
  return last;
}

function resultOf({ results: [result], failure }: Job): FreeResult {
  if (!result) throw new ApiError(422, failure?.detail ?? '', '');
  return result;
}

async function measure(url: string, factor: number | null): Promise<FreeResult> {
  const { x, y } = await readImageSize(url);
  return { url, width: x, height: y, factor };
}

function adviceFor(error: Error): string {
  if (error instanceof ApiError && error.status === 429) {
    const minutes = Math.ceil((error.retryAfterSeconds ?? 3600) / 60);
    return `You have used this hour’s free runs. Try again in ${minutes} min, or sign up: new accounts start with free credits.`;
  }
  return failureText(error);
}
