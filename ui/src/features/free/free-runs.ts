import { create } from 'zustand';
import type { EditingTool } from '@/features/catalog/tool';
import { followJob } from '@/features/runs/follow-job';
import { isAboutPicture, isFinal } from '@/features/runs/job-state';
import { ApiError, api, isProblem, isVerdict, sendFile } from '@/lib/api-client';
import type { Job, Result, ToolName } from '@/lib/api-types';
import { failureText } from '@/lib/failure-text';
import { readImageSize } from '@/lib/image-size';
import { forgetOriginal, keepOriginal, keptOriginal } from '@/lib/kept-picture';
import { notifyError } from '@/lib/notify';
import { onSignOut } from '@/lib/sign-out-cleanup';
import { t } from '@/lib/translate';
import { forgetRun, keepRun, keptRun } from './kept-run';

/** The full result or, if the API answered with the picture itself, only what the picture shows. */
export type FreeResult = Pick<Result, 'url' | 'width' | 'height'> & Partial<Result>;

/** A visitor's run of a tool. */
type FreeRun = {
  stop: AbortController;
  /** Null if this browser no longer has it. */
  file: File | null;
  uploadFraction: number | null;
  job: Job | null;
  result: FreeResult | null;
  error: Error | null;
};

/** Outside the component tree, so that an upload and its run continue while another page is open. */
export const useFreeRuns = create<Partial<Record<ToolName, FreeRun>>>(() => ({}));

export function startFreeRun(tool: EditingTool, file: File) {
  void carryOut(tool, file, async (signal, update) => {
    update({ uploadFraction: 0 });
    const { status, body } = await sendFile(tool.visitorPath, file, {
      onProgress: (uploadFraction) => update({ uploadFraction }),
      signal,
      headers: { Prefer: 'respond-async' },
    });
    update({ uploadFraction: null });
    if (status !== 202) return measure(URL.createObjectURL(body), tool.free.factor);
    const job: Job = JSON.parse(await body.text());
    keepRun(tool.name, job.id);
    void keepOriginal(tool.name, job.id, file);
    update({ job });
    return resultOf(isFinal(job) ? job : await follow(job.id, signal, update));
  });
}

/** Continues with the run of this tab, as its page opens: after a reload, or after a visit to another page. */
export function resumeFreeRun(tool: EditingTool) {
  const run = useFreeRuns.getState()[tool.name];
  const jobId = keptRun(tool.name);
  if (run && (isBusy(run) || (run.result && jobId))) return;
  drop(tool.name);
  if (!jobId) return;
  void carryOut(tool, null, async (signal, update) => {
    void keptOriginal(tool.name, jobId).then((file) => update({ file }));
    try {
      return resultOf(await follow(jobId, signal, update));
    } catch (error) {
      // The server no longer has it.
      if (isProblem(error, 404)) return null;
      throw error;
    }
  });
}

/** Stops the run of a tool, and forgets it and its result. */
export function resetFreeRun({ name }: EditingTool) {
  const job = useFreeRuns.getState()[name]?.job;
  // A run that nobody waits for gives the image's free run back.
  if (job) void api.DELETE('/api/jobs/{jobId}', { params: { path: { jobId: job.id } } }).catch(() => {});
  forget(name);
  drop(name);
}

export const isBusy = ({ result, error }: FreeRun) => !result && !error;

/** Whether the visitor has had the picture's free run. */
export const isRefusal = (error: Error | null) => isProblem(error, 409, 'Free Exists');

/** Whether “try again later” would contradict what the API says: about a picture that cannot be used, or when to try again. */
const advises = (error: Error) => isVerdict(error) || isProblem(error, 429);

/** The tools whose page is open. */
const openTools = new Set<ToolName>();

/** Records that the tool's page is open. Returns a function for when it no longer is. */
export function attendFreeRuns({ name }: EditingTool) {
  openTools.add(name);
  return () => void openTools.delete(name);
}

onSignOut(() => {
  for (const name of Object.keys(useFreeRuns.getState())) drop(name as ToolName);
});

type Update = (change: Partial<FreeRun>) => void;

/** Records what `run` obtains: a result, or null if the page may silently start over. */
async function carryOut(
  { name, texts }: EditingTool,
  file: File | null,
  run: (signal: AbortSignal, update: Update) => Promise<FreeResult | null>,
) {
  drop(name);
  const stop = new AbortController();
  const update: Update = (change) =>
    useFreeRuns.setState(({ [name]: last }) =>
      last?.stop === stop ? { [name]: { ...last, ...change } } : {},
    );
  const started: FreeRun = { stop, file, uploadFraction: null, job: null, result: null, error: null };
  useFreeRuns.setState({ [name]: started });
  try {
    const result = await run(stop.signal, update);
    if (result) return update({ result, job: null });
    if (stop.signal.aborted) return;
    forget(name);
    drop(name);
  } catch (caught) {
    const error = caught as Error;
    if (stop.signal.aborted) return;
    forget(name);
    // The browser ends requests when the page is left.
    if (error.name === 'AbortError') return drop(name);
    update({ error, job: null, uploadFraction: null });
    if (!advises(error)) notifyError(t(isRefusal(error) ? texts.freeExists : texts.visitorRunFailed));
    // The tool's page says it itself.
    else if (!openTools.has(name)) notifyError(failureText(error));
  }
}

function drop(name: ToolName) {
  useFreeRuns.getState()[name]?.stop.abort();
  useFreeRuns.setState({ [name]: undefined });
}

function forget(name: ToolName) {
  forgetRun(name);
  void forgetOriginal(name);
}

/** Returns the job's final state; null once nobody waits for it. */
async function follow(jobId: string, signal: AbortSignal, update: Update): Promise<Job | null> {
  let last: Job | null = null;
  await followJob(jobId, signal, (job) => {
    last = job;
    update({ job });
  });
  return last;
}

/** Returns null for a run that another tab has canceled, and for a result that is no longer stored. */
function resultOf(job: Job | null): FreeResult | null {
  const failure = job?.failure;
  if (failure) {
    const status = isAboutPicture(failure) ? 422 : 500;
    throw new ApiError(status, withoutCharge(failure.detail), '', null, failure.code);
  }
  return job?.results[0] ?? null;
}

/** Visitors pay nothing. Other languages have no such sentence; they show the text of the code. */
const withoutCharge = (detail: string) =>
  detail.replace(/ You have not been charged(?:\.|; (\w))/, (_, next) =>
    next ? ` ${next.toUpperCase()}` : '',
  );

async function measure(url: string, factor: number | null): Promise<FreeResult> {
  const { x, y } = await readImageSize(url);
  return { url, width: x, height: y, factor };
}
