import { useMutation } from '@tanstack/react-query';
import { useRef, useState } from 'react';
import { ApiError, isProblem, sendFile } from '@/lib/api-client';
import type { Job, Result } from '@/lib/api-types';
import { readImageSize } from '@/lib/image-size';
import { isFinal, loadFollowing } from '@/lib/job-state';
import { notifyError } from '@/lib/notify';
import { reasonOf } from '../reason-of';
import type { EditingTool } from '../tool';

/** Everything about it, or of a picture that came without its job only what can be seen. */
export type FreeResult = Pick<Result, 'url' | 'width' | 'height'> & Partial<Result>;

/** A visitor's run: the file goes up, the job is followed without a token, one picture comes back. */
export function useFreeRun(tool: EditingTool) {
  const [uploaded, setUploaded] = useState<number | null>(null);
  const [job, setJob] = useState<Job | null>(null);
  const [isRefused, setRefused] = useState(false);
  const running = useRef<AbortController | null>(null);

  const run = useMutation({
    mutationFn: async (file: File): Promise<FreeResult> => {
      const stop = new AbortController();
      running.current = stop;
      setJob(null);
      setUploaded(0);
      void loadFollowing().catch(() => {});
      const { status, body } = await sendFile(tool.visitorPath, file, {
        onProgress: setUploaded,
        signal: stop.signal,
        headers: { Prefer: 'respond-async' },
      });
      setUploaded(null);
      if (status !== 202) return measure(URL.createObjectURL(body), tool.free.factor);
      return outcome(await follow(JSON.parse(await body.text()) as Job, stop.signal, setJob));
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
      setUploaded(null);
      setJob(null);
    },
  });

  return {
    start: run.mutate,
    isRunning: run.isPending,
    uploaded,
    job,
    result: run.data ?? null,
    isRefused,
    advice: run.error && !isRefused ? adviceFor(run.error) : null,
    reset: () => {
      running.current?.abort();
      run.reset();
      setRefused(false);
    },
  };
}

async function follow(first: Job, signal: AbortSignal, onJob: (job: Job) => void): Promise<Job> {
  let last = first;
  onJob(first);
  if (!isFinal(first)) {
    const { followJob } = await loadFollowing();
    await followJob(first.id, signal, (job) => {
      last = job;
      onJob(job);
    });
  }
  if (signal.aborted) throw new DOMException('Aborted', 'AbortError');
  return last;
}

function outcome({ results: [result], failure }: Job): FreeResult {
  if (!result) throw new ApiError(422, failure?.detail ?? '', '');
  return result;
}

/** A picture that came without its job: all that is known is what can be seen. */
async function measure(url: string, factor: number | null): Promise<FreeResult> {
  const { x, y } = await readImageSize(url);
  return { url, width: x, height: y, factor };
}

function adviceFor(error: Error): string {
  if (error instanceof ApiError && error.status === 429) {
    const minutes = Math.ceil((error.retryAfterSeconds ?? 3600) / 60);
    return `You have used the free runs of this hour. Try again in ${minutes} min, or sign up: new accounts start with free credits.`;
  }
  return reasonOf(error);
}
