// A client of Retouch for Node 20, browsers on its own origin, and anything else that has fetch. It needs no other package.
// `schema.ts`, generated from the API's document, has the types of its answers.
import type { components } from './schema.js';

export type { components, paths } from './schema.js';

type Schemas = components['schemas'];
export type Image = Schemas['Image'];
export type Job = Schemas['Job'];
export type Result = Schemas['Result'];
export type SelectRequest = Schemas['SelectRequest'];
export type User = Schemas['User'];

/**
 * What this client throws. An error of a run has its idempotency key: a call with the same key waits for the same run. It
 * also has the id of the job once the server has returned it.
 */
export class RetouchError extends Error {
  idempotencyKey: string | undefined;
  jobId: string | undefined;
}

/** The server refused a request. The message is for people; `code` is for programs, where there is one. */
export class Refused extends RetouchError {
  constructor(
    readonly status: number,
    detail: string,
    readonly code: string | undefined,
    /** Seconds until another try makes sense. */
    readonly retryAfter: number | undefined,
    /** True if it was not Retouch but something before it. */
    readonly isOfProxy = false,
  ) {
    super(detail);
    this.name = 'Refused';
  }
}

/** A run failed, at no cost. */
export class RunFailed extends RetouchError {
  readonly code: string | undefined;

  constructor(readonly job: Job) {
    super(job.failure?.detail ?? 'The run failed.');
    this.name = 'RunFailed';
    this.code = job.failure?.code;
  }
}

/** A run was canceled, at no cost: here because it took too long, or elsewhere. */
export class Canceled extends RetouchError {
  override name = 'Canceled';
}

/** A run was paid, but its result has been deleted since, so a call with its key cannot return it. */
export class ResultDeleted extends RetouchError {
  override name = 'ResultDeleted';
}

/** The server did not answer, however often it was asked. */
export class Unreachable extends RetouchError {
  override name = 'Unreachable';
}

export interface Options {
  /** An API key, or a token of the identity provider. */
  key?: string;
  token?: string;
  /** How often a request is repeated after a lost connection or a refusal that asks to come back; 4 by default. */
  retries?: number;
  /** How long one request may take, in milliseconds; by default a minute, or 15 if it sends or downloads a file. */
  timeout?: number;
}

export interface RunOptions {
  /**
   * Calls with the same key wait for the same run, so that a program that was restarted pays once. A run that failed fails
   * again with the same key; a canceled one frees its key.
   */
  idempotencyKey?: string;
  /** How long to wait for the result, in milliseconds; ten minutes by default. The run is canceled after that. */
  patience?: number;
  /** Cancels the run. */
  signal?: AbortSignal;
  /** Gets the job before each pause. */
  onChange?: (job: Job) => void;
}

/** What ends the repeats of a request. */
interface Limits {
  /** No pause before a repeat lasts beyond this time, in milliseconds since 1970: the refusal is thrown instead. */
  ends: number;
  /** Ends a pause before a repeat, but never a request on its way. */
  pauseSignal: AbortSignal | undefined;
}

interface Message extends Partial<Limits> {
  body?: BodyInit;
  headers?: Record<string, string>;
  signal?: AbortSignal | undefined;
  /** Whether the request sends or downloads a file. */
  isTransfer?: boolean;
}

// Refusals that ask to come back. Only those of Retouch itself say that nothing happened: a proxy may have lost its server,
// which may have done its work.
const PASSING = [429, 502, 503, 504];

/** An account at a Retouch server. */
export class Retouch {
  readonly #address: string;
  readonly #options: Options;

  constructor(address: string, options: Options) {
    if (!options.key && !options.token) {
      throw new TypeError(
        "Pass { key: 'rt_…' } or { token: '…' }: both are missing or empty. If yours comes from an environment variable, set it.",
      );
    }
    this.#address = address.replace(/\/+$/, '');
    this.#options = options;
  }

  /** Returns the account and its credits. */
  account(): Promise<User> {
    return this.json('GET', '/api/user/get');
  }

  /**
   * Uploads a PNG, JPEG, WebP, HEIC or AVIF, under the name of its file unless you give another. Another call with the same
   * file and `idempotencyKey` returns the same image.
   */
  upload(
    picture: Blob,
    name = picture instanceof File ? picture.name : 'picture',
    { idempotencyKey = crypto.randomUUID() } = {},
  ): Promise<Image> {
    const body = new FormData();
    body.append('file', picture, name);
    return this.json('POST', '/api/images/upload', { body, headers: { 'Idempotency-Key': idempotencyKey } });
  }

  /** Cuts out the subject of an uploaded image. */
  removeBackground(image: string, options?: RunOptions): Promise<Result> {
    return this.run(`/api/rmbg-images/remove-bg-ai?imageId=${encodeURIComponent(image)}`, options);
  }

  /** Enlarges an uploaded image. */
  async upscale(image: string, factor: 2 | 4, options?: RunOptions): Promise<Result> {
    // Not every caller is checked by TypeScript.
    if (factor !== 2 && factor !== 4) throw new RangeError('factor must be 2 or 4');
    return this.run(`/api/upscale/upscale-ai-${factor}?imageId=${encodeURIComponent(image)}`, options);
  }

  /** Repaints the area that the mask, a PNG, marks in an uploaded image. */
  magicFix(
    image: string,
    { prompt, mask, exact }: { prompt: string; mask: Blob; exact?: boolean },
    options?: RunOptions,
  ): Promise<Result> {
    const body = new FormData();
    body.append('prompt', prompt);
    if (exact !== undefined) body.append('exactMask', String(exact));
    body.append('file', mask, 'mask.png');
    return this.run(`/api/magic-images/fix/${encodeURIComponent(image)}`, options, { body });
  }

  /** Returns the mask of the clicked object, a PNG. Free. */
  async select(image: string, clicks: SelectRequest): Promise<Blob> {
    const headers = { 'Content-Type': 'application/json' };
    const path = `/api/images/${encodeURIComponent(image)}/select`;
    return (await this.request('POST', path, { body: JSON.stringify(clicks), headers })).blob();
  }

  /** Returns the file of a result. */
  async download(result: Result, format: 'png' | 'jpg' | 'webp' = 'png', quality = 90): Promise<Blob> {
    const query = format === 'png' ? '' : `?format=${format}&quality=${quality}`;
    return (await this.request('GET', `/api/results/${result.imageId}/file${query}`, { isTransfer: true })).blob();
  }

  /**
   * Runs a tool and waits for its result, as long as `patience`; then, or after an error, cancels the run. If the server is
   * too busy to accept the run in this time, its refusal is thrown, and there is no run.
   */
  async run(path: string, options: RunOptions = {}, message: Message = {}): Promise<Result> {
    const { idempotencyKey = crypto.randomUUID(), patience = 600_000, signal } = options;
    const headers = { ...message.headers, 'Idempotency-Key': idempotencyKey, Prefer: 'respond-async' };
    // The signal never ends the submission itself: the job would run, and nobody would know its id.
    const limits = { ends: Date.now() + patience, pauseSignal: signal };
    let job: Job | undefined;
    signal?.throwIfAborted();
    try {
      job = await this.json<Job>('POST', path, { ...message, headers, ...limits });
      return resultOf(await this.#waitForEnd(job, limits, options.onChange), signal);
    } catch (error) {
      if (error instanceof RetouchError) Object.assign(error, { idempotencyKey, jobId: job?.id });
      throw error;
    }
  }

  /** Waits until a job ends; at the limits, or after an error, cancels it. */
  async #waitForEnd(job: Job, limits: Limits, onChange: RunOptions['onChange']): Promise<Job> {
    const { ends, pauseSignal } = limits;
    let last = job;
    try {
      for (let pause = 100; !hasEnded(last) && Date.now() < ends && !pauseSignal?.aborted; pause *= 1.5) {
        onChange?.(last);
        await sleep(Math.min(pause, 2000, Math.max(ends - Date.now(), 0)), pauseSignal);
        if (!pauseSignal?.aborted) last = await this.#poll(last, limits);
      }
    } catch (error) {
      // The run would be paid, and its result lost.
      await this.cancel(job.id).catch(() => undefined);
      throw error;
    }
    // It may end at this moment; then there is a result after all.
    return hasEnded(last) ? last : this.cancel(job.id);
  }

  /** Returns the job as it is now, or as it was if the server is away for a moment or the signal is aborted. */
  async #poll(job: Job, limits: Limits): Promise<Job> {
    try {
      return await this.json<Job>('GET', `/api/jobs/${encodeURIComponent(job.id)}`, limits);
    } catch (error) {
      if (isPassing(error) || limits.pauseSignal?.aborted) return job;
      throw error;
    }
  }

  /** Returns a job as it is now. */
  job(job: string): Promise<Job> {
    return this.json('GET', `/api/jobs/${encodeURIComponent(job)}`);
  }

  /** Cancels a job, which then costs nothing, and returns it. A job that has ended stays as it is. */
  cancel(job: string): Promise<Job> {
    return this.json('DELETE', `/api/jobs/${encodeURIComponent(job)}`);
  }

  /** Sends a request and returns the JSON of its answer. */
  async json<T>(method: string, path: string, message?: Message): Promise<T> {
    return (await this.request(method, path, message)).json() as Promise<T>;
  }

  /** Sends a request to any route. */
  async request(method: string, path: string, message: Message = {}): Promise<Response> {
    const { retries = 4 } = this.#options;
    // A lost answer to anything else may have had an effect.
    const isRepeatable = ['GET', 'DELETE'].includes(method) || 'Idempotency-Key' in (message.headers ?? {});
    let { ends = Number.POSITIVE_INFINITY, pauseSignal = message.signal } = message;
    for (let attempt = 0; ; attempt += 1) {
      try {
        return await this.#send(method, path, message);
      } catch (error) {
        if (attempt >= retries || !(isRepeatable ? isPassing(error) : isBusy(error))) throw error;
        if (method === 'POST' && !isBusy(error)) {
          // The run may have been accepted. Only a repeat returns its job, which can then be canceled.
          ends = Number.POSITIVE_INFINITY;
          pauseSignal = message.signal;
        }
        const pause = pauseAfter(error, attempt);
        if (Date.now() + pause > ends) throw error;
        await sleep(pause, pauseSignal);
        pauseSignal?.throwIfAborted();
      }
    }
  }

  /** Sends a request once. */
  async #send(method: string, path: string, message: Message): Promise<Response> {
    const { isTransfer = typeof message.body === 'object' } = message;
    // fetch does not report the progress of an upload, so a file gets as long as the server allows.
    const { key, token, timeout = isTransfer ? 900_000 : 60_000 } = this.#options;
    // A redirect to another server drops this header, but would keep one of our own.
    const headers = { ...message.headers, Authorization: `Bearer ${key || token}` };
    const signal = AbortSignal.any([AbortSignal.timeout(timeout), ...(message.signal ? [message.signal] : [])]);
    try {
      const answer = await fetch(this.#address + path, { method, body: message.body ?? null, headers, signal });
      if (!answer.ok) throw await refusal(answer);
      // Read here, so that an answer that breaks off leads to a repeat.
      return new Response(answer.status === 204 ? null : await answer.arrayBuffer(), answer);
    } catch (error) {
      if (error instanceof Refused || message.signal?.aborted) throw error;
      throw new Unreachable(`${this.#address} does not answer: ${error}`, { cause: error });
    }
  }
}

/** Returns whether a refusal came before anything happened. */
function isBusy(error: unknown): boolean {
  return error instanceof Refused && (error.status === 429 || (error.status === 503 && !error.isOfProxy));
}

function isPassing(error: unknown): boolean {
  if (error instanceof Refused) return PASSING.includes(error.status) || error.code === 'outcome_unknown';
  return error instanceof Unreachable;
}

/** Returns how many milliseconds to wait before another try. */
function pauseAfter(error: unknown, attempt: number): number {
  if (error instanceof Refused && error.retryAfter !== undefined) return error.retryAfter * 1000;
  return 500 * 2 ** attempt * (0.5 + Math.random() / 2);
}

function hasEnded(job: Job): boolean {
  return job.state !== 'queued' && job.state !== 'running';
}

/** Returns the result of a job that has ended. */
function resultOf(job: Job, signal: AbortSignal | undefined): Result {
  const [result] = job.results;
  if (job.state === 'done' && result) return result;
  if (job.state === 'done') throw new ResultDeleted('The result was deleted; the run was paid.');
  if (job.state !== 'cancelled') throw new RunFailed(job);
  signal?.throwIfAborted();
  throw new Canceled('The run was canceled.');
}

/** Waits, or until the signal. */
function sleep(milliseconds: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve();
    const timer = setTimeout(done, milliseconds);
    function done() {
      clearTimeout(timer);
      signal?.removeEventListener('abort', done);
      resolve();
    }
    signal?.addEventListener('abort', done);
  });
}

async function refusal(answer: Response): Promise<Refused> {
  // From a proxy, perhaps.
  const problem = (await answer.json().catch(() => undefined)) as Partial<Schemas['Problem']> | undefined;
  const wait = Number.parseInt(answer.headers.get('Retry-After') ?? '', 10);
  const detail = problem?.detail ?? answer.statusText;
  const retryAfter = Number.isNaN(wait) ? undefined : wait;
  const isOfProxy = !answer.headers.get('Content-Type')?.startsWith('application/problem+json');
  return new Refused(answer.status, detail, problem?.code ?? undefined, retryAfter, isOfProxy);
}
