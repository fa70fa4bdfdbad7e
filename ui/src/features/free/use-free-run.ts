import { type UseMutationResult, useMutation } from '@tanstack/react-query';
import { useEffect, useEffectEvent, useRef, useState } from 'react';
import type { EditingTool } from '@/features/catalog/tool';
import { followJob } from '@/features/runs/follow-job';
import { isFinal } from '@/features/runs/job-state';
import { ApiError, api, isProblem, sendFile } from '@/lib/api-client';
import type { Job, Result } from '@/lib/api-types';
import { failureText } from '@/lib/failure-text';
import { readImageSize } from '@/lib/image-size';
import { forgetOriginal, keepOriginal, keptOriginal } from '@/lib/kept-picture';
import { notifyError } from '@/lib/notify';
import { t } from '@/lib/translate';
import { forgetRun, keepRun, keptRun } from './kept-run';

/** The full result or, if the API answered with the picture itself, only what the picture shows. */
export type FreeResult = Pick<Result, 'url' | 'width' | 'height'> & Partial<Result>;

/** A file to run on, or the id of a run that was started before the page was left. */
type Request = { file: File } | { jobId: string };

/**
 * A visitor's run: uploads the file, follows the job without a token, and returns one picture. A run of this tab is
 * taken up again after a reload, and after a visit to another page.
 */
export function useFreeRun(tool: EditingTool) {
  const [uploadFraction, setUploadFraction] = useState<number | null>(null);
  const [job, setJob] = useState<Job | null>(null);
  /** The object URL of the file of a run from before the page was left. */
  const [originalUrl, setOriginalUrl] = useState<string | null>(null);
  const current = useRef<AbortController | null>(null);

  const run: UseMutationResult<FreeResult, Error, Request> = useMutation({
    mutationFn: async (request: Request): Promise<FreeResult> => {
      const stop = new AbortController();
      current.current = stop;
      setJob(null);
      if ('jobId' in request) return resultOf(await follow(request.jobId, stop.signal, setJob));
      setUploadFraction(0);
      const { status, body } = await sendFile(tool.visitorPath, request.file, {
        onProgress: setUploadFraction,
        signal: stop.signal,
        headers: { Prefer: 'respond-async' },
      });
      setUploadFraction(null);
      if (status !== 202) return measure(URL.createObjectURL(body), tool.free.factor);
      const started: Job = JSON.parse(await body.text());
      keepRun(tool.name, started.id);
      void keepOriginal(tool.name, started.id, request.file);
      setJob(started);
      return resultOf(isFinal(started) ? started : await follow(started.id, stop.signal, setJob));
    },
    onError: (error, request) => {
      if (error.name === 'AbortError') return;
      forget();
      // The server no longer has the earlier run.
      if ('jobId' in request && isProblem(error, 404)) return run.reset();
      notifyError(t(isRefusal(error) ? tool.texts.freeExists : tool.texts.visitorRunFailed));
    },
    onSettled: () => {
      setUploadFraction(null);
      setJob(null);
    },
  });

  const resume = useEffectEvent(() => {
    const jobId = keptRun(tool.name);
    if (!jobId) return;
    run.mutate({ jobId });
    void keptOriginal(tool.name, jobId).then((file) => file && setOriginalUrl(URL.createObjectURL(file)));
  });
  useEffect(() => resume(), []);
  useEffect(() => () => void (originalUrl && URL.revokeObjectURL(originalUrl)), [originalUrl]);

  function forget() {
    forgetRun(tool.name);
    void forgetOriginal(tool.name);
    setOriginalUrl(null);
  }

  const isRefused = isRefusal(run.error);

  return {
    start: (file: File) => run.mutate({ file }),
    // On the first render, an earlier run has not been taken up again yet.
    isBusy: run.isPending || (run.isIdle && keptRun(tool.name) !== null),
    uploadFraction,
    job,
    result: run.data ?? null,
    originalUrl,
    isRefused,
    advice: run.error && !isRefused ? failureText(run.error) : null,
    reset: () => {
      current.current?.abort();
      // A run that nobody waits for gives the image's free run back.
      if (job) void api.DELETE('/api/jobs/{jobId}', { params: { path: { jobId: job.id } } }).catch(() => {});
      forget();
      run.reset();
    },
  };
}

/** Whether the visitor has had the picture's free run. */
const isRefusal = (error: Error | null) => isProblem(error, 409, 'Free Exists');

/** Returns the job's final state. */
async function follow(jobId: string, signal: AbortSignal, onJob: (job: Job) => void): Promise<Job> {
  let last: Job | null = null;
  await followJob(jobId, signal, (job) => {
    last = job;
    onJob(job);
  });
  if (signal.aborted || !last) throw new DOMException('Aborted', 'AbortError');
  return last;
}

function resultOf({ results: [result], failure }: Job): FreeResult {
  if (!result) throw new ApiError(422, failure?.detail ?? '', '', null, failure?.code);
  return result;
}

async function measure(url: string, factor: number | null): Promise<FreeResult> {
  const { x, y } = await readImageSize(url);
  return { url, width: x, height: y, factor };
}
