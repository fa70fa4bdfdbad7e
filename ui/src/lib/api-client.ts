import type { Client } from 'openapi-fetch';
import type { paths } from '@/api/schema';
import { learnServerClock } from '@/lib/server-clock';
import { msg } from '@/lib/translate';

/** An error response of the API. `detail` is written for the user. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly detail: string,
    body: string,
    readonly retryAfterSeconds: number | null = null,
    /** The machine-readable kind of problem, if the API names one. */
    readonly code: string | null = null,
  ) {
    super(`HTTP error! status: ${status}, message: ${body}`);
    this.name = 'ApiError';
  }
}

/** Shown if there was no response at all. */
export const connectionLost = msg('The connection was lost. Please try again.');

type Credentials = {
  /** Returns a valid token, or null without a user. */
  token: () => Promise<string | null>;
  /** Returns another token than a refused one; null if there is none. */
  replaceToken: (refused: string | null) => Promise<string | null>;
  /** The API has refused the only token there is. */
  onRefused: () => void;
  /** Starts a new account if the token comes from a sign-in. Returns false if not, or if the API refuses it. */
  startAgain: (token: string) => Promise<boolean>;
  /** The account of the token was deleted. */
  onDeleted: () => void;
};

/** Authorizes the calls. Set once by the session, so that this file does not depend on the identity provider. */
let credentials: Credentials = {
  token: async () => null,
  replaceToken: async () => null,
  onRefused: () => {},
  startAgain: async () => false,
  onDeleted: () => {},
};

export function setCredentials(next: Credentials) {
  credentials = next;
}

/**
 * Sends a call with the user's token. If the API refuses the token, sends it once more with a renewed one, unless the
 * account was deleted. Does the same after a 404 if the token has been replaced in the meantime: the data of a user looks
 * missing to others. If the account was deleted before the user signed in, starts another one and sends the call again.
 */
async function authorized<T extends { status: number }>(
  send: (token: string | null) => Promise<T>,
  textOf: (answer: T) => Promise<string>,
): Promise<T> {
  const isOfDeletedAccount = async (refusal: T) =>
    codeOf(parsed(await textOf(refusal))) === 'account_deleted';
  const end = (isDeleted: boolean) => (isDeleted ? credentials.onDeleted() : credentials.onRefused());
  const sendAs = async (token: string | null) => {
    const answer = await send(token);
    const startsAgain =
      answer.status === 401 &&
      token !== null &&
      (await isOfDeletedAccount(answer)) &&
      (await credentials.startAgain(token));
    return startsAgain ? send(token) : answer;
  };

  const token = await credentials.token();
  const answer = await sendAs(token);
  if (answer.status !== 401 && answer.status !== 404) return answer;
  const isRefused = answer.status === 401 && token !== null;
  const isDeleted = isRefused && (await isOfDeletedAccount(answer));
  const other = isRefused && !isDeleted ? await credentials.replaceToken(token) : await credentials.token();
  if (!other || other === token) {
    if (isRefused) end(isDeleted);
    return answer;
  }
  const second = await sendAs(other);
  if (second.status !== 401) return second;
  const isSecondDeleted = await isOfDeletedAccount(second);
  // The user may have signed in again in the meantime.
  if ((await credentials.token()) === other) end(isSecondDeleted);
  return second;
}

const textOfCopy = (response: Response) => response.clone().text();

const bearer = (token: string | null): Record<string, string> =>
  token ? { Authorization: `Bearer ${token}` } : {};

type Call = {
  params?: {
    path?: Record<string, unknown>;
    query?: Record<string, unknown>;
    header?: Record<string, string>;
  };
  body?: unknown;
  parseAs?: 'json' | 'blob' | 'stream';
  signal?: AbortSignal;
};

/** How long the answer to a read may take to begin. On a slow line, all of it may take longer. */
const MAX_SILENCE_MS = 20_000;

async function call(
  method: string,
  path: string,
  { params: { path: names, query = {}, header } = {}, body, parseAs, signal }: Call = {},
) {
  const address = path.replace(/{(\w+)}/g, (_, name) => encodeURIComponent(String(names?.[name])));
  // Absolute: outside a page, as in tests, there is no base URL.
  const url = new URL(address, window.location.origin);
  for (const [name, value] of Object.entries(query)) {
    if (value != null) url.searchParams.set(name, String(value));
  }
  const stop = stopOf(signal);
  const response = await authorized((token) => {
    const contentType = body !== undefined && { 'Content-Type': 'application/json' };
    const answer = fetch(url, {
      method,
      signal: stop.signal,
      headers: { ...contentType, ...header, ...bearer(token) },
      body: JSON.stringify(body),
    });
    // The API may need longer to make a file, and nobody knows how long it takes to change something.
    return method === 'GET' ? within(parseAs ? MAX_ANSWER_MS : MAX_SILENCE_MS, stop, answer) : answer;
  }, textOfCopy);
  const { headers } = response;
  const type = headers.get('Content-Type');
  if (!isPage(type)) learnServerClock(headers.get('Date'));
  if (!response.ok) return { error: parsed(await response.text()), response };
  refusePage(type);
  if (parseAs === 'stream') return { data: response.body, response };
  return {
    data: parseAs === 'blob' ? await readFile(response, stop) : complete(await response.text()),
    response,
  };
}

/** Returns what stops a request. The caller can do that, too. */
function stopOf(signal?: AbortSignal): AbortController {
  signal?.throwIfAborted();
  const stop = new AbortController();
  signal?.addEventListener('abort', () => stop.abort(signal.reason));
  return stop;
}

/** Stops a request that is not answered in time. */
function within<T>(ms: number, stop: AbortController, answer: Promise<T>): Promise<T> {
  const limit = setTimeout(() => stop.abort(lost()), ms);
  return answer.finally(() => clearTimeout(limit));
}

/** Reads a file. That may take long on a slow line, but a dead connection would never end. */
function readFile(response: Response, stop: AbortController): Promise<Blob> {
  let limit: ReturnType<typeof setTimeout> | undefined;
  const allow = () => {
    clearTimeout(limit);
    limit = setTimeout(() => stop.abort(lost()), MAX_PAUSE_MS);
  };
  allow();
  const watch = new TransformStream({
    transform: (bytes, file) => {
      allow();
      file.enqueue(bytes);
    },
  });
  return new Response(response.body?.pipeThrough(watch), response)
    .blob()
    .catch((error) => {
      // Browsers do not pass on why the request was stopped.
      stop.signal.throwIfAborted();
      throw error;
    })
    .finally(() => clearTimeout(limit));
}

/**
 * The API with the types of its document. openapi-fetch has the types; its code would send the same with 2 kB more, of
 * which the page uses a quarter.
 */
export const api = Object.fromEntries(
  ['GET', 'POST', 'PATCH', 'DELETE'].map((method) => [method, call.bind(null, method)]),
) as unknown as Pick<Client<paths>, 'GET' | 'POST' | 'PATCH' | 'DELETE'>;

type Answer<T> = { data?: T; error?: unknown; response: Response };

export function unwrap<T>({ data, error, response }: Answer<T>): T {
  if (response.ok) return data as T;
  throw toApiError(response.status, error, (name) => response.headers.get(name));
}

/** Accepts the deletion of an object that no longer exists, perhaps because another tab deleted it. */
export function unwrapDeletion(answer: Answer<unknown>): void {
  if (answer.response.status !== 404) unwrap(answer);
}

function toApiError(status: number, body: unknown, header: (name: string) => string | null): ApiError {
  const { detail } = fieldsOf(body);
  const text = typeof body === 'string' ? body : JSON.stringify(body ?? '');
  const retryAfter = Number(header('Retry-After'));
  return new ApiError(
    status,
    typeof detail === 'string' ? detail : '',
    text,
    retryAfter > 0 ? retryAfter : null,
    codeOf(body),
  );
}

/** An error without the API's words, where nobody reads them. */
const refusalOf = async (response: Response) =>
  toApiError(response.status, await response.text(), (name) => response.headers.get(name));

const fieldsOf = (body: unknown): Record<string, unknown> => (body instanceof Object ? { ...body } : {});

function codeOf(body: unknown): string | null {
  const { code } = fieldsOf(body);
  return typeof code === 'string' ? code : null;
}

export function isProblem(error: unknown, status: number, detail?: string): error is ApiError {
  return (
    error instanceof ApiError && error.status === status && (detail === undefined || error.detail === detail)
  );
}

const VERDICTS = [400, 413, 415, 422];

/** Whether an answer is about the file that was sent, and not about the account, the server or the connection. */
export function isVerdict(error: unknown): error is ApiError {
  return error instanceof ApiError && VERDICTS.includes(error.status) && error.code !== 'storage_full';
}

/** The routes of visitors' runs. */
export type VisitorPath = '/api/free/remove-bg-fr' | '/api/free/upscale-fr';

/** The routes that render a result: for its owner, and for anyone with its signed URL. */
export type RenderPath = `/api/results/${string}/render` | `/api/files/results/${string}/render?${string}`;

type SendFileOptions = {
  onProgress?: (fraction: number) => void;
  signal?: AbortSignal;
  headers?: Record<string, string>;
  /** Form fields in addition to the file. */
  fields?: Record<string, string>;
};

/** Sends one file as multipart. */
export async function sendFile(
  path: '/api/images/upload' | '/api/verify' | `/api/magic-images/fix/${string}` | VisitorPath,
  file: File,
  options: SendFileOptions = {},
): Promise<{ status: number; body: Blob }> {
  return sendForm(path, { file, ...options.fields }, options);
}

/** Sends fields and files as multipart. */
export async function sendForm(
  path: Parameters<typeof sendFile>[0] | RenderPath | '/api/preview' | `/api/upscale/sample?${string}`,
  fields: Record<string, string | File>,
  options: Omit<SendFileOptions, 'fields'> = {},
): Promise<RawAnswer> {
  const form = new FormData();
  for (const [name, value] of Object.entries(fields)) form.append(name, value);
  const { status, body, header } = await authorized(
    (token) => post(path, form, token, options),
    ({ body }) => body.text(),
  );
  if (status < 200 || status >= 300) throw toApiError(status, parsed(await body.text()), header);
  refusePage(header('Content-Type'));
  return { status, body, header };
}

type RawAnswer = { status: number; body: Blob; header: (name: string) => string | null };

/** How long an upload may stand still. The API gives up on it after the same time. */
const MAX_PAUSE_MS = 30_000;
/**
 * How long an answer may take after everything was sent. The end of a file may still be in the buffers of a slow line, and
 * the API waits up to 40 seconds to decode it, and up to 55 for a sample; runs are answered at once.
 */
export const MAX_ANSWER_MS = 120_000;

const lost = () => new DOMException('The connection was lost', 'TimeoutError');

/** Uses XMLHttpRequest because fetch does not report upload progress. */
function post(
  path: string,
  form: FormData,
  token: string | null,
  { onProgress, signal, headers = {} }: SendFileOptions,
): Promise<RawAnswer> {
  return new Promise((resolve, reject) => {
    const aborted = () => new DOMException('Aborted', 'AbortError');
    if (signal?.aborted) return reject(aborted());
    const request = new XMLHttpRequest();
    request.open('POST', path);
    request.responseType = 'blob';
    for (const [name, value] of Object.entries({ ...bearer(token), ...headers })) {
      request.setRequestHeader(name, value);
    }
    let limit: ReturnType<typeof setTimeout> | undefined;
    // `request.timeout` would count from the start, and nobody knows how long an upload takes.
    const allow = (ms: number) => {
      clearTimeout(limit);
      limit = setTimeout(() => stop(lost()), ms);
    };
    request.upload.onprogress = ({ lengthComputable, loaded, total }) => {
      allow(loaded < total ? MAX_PAUSE_MS : MAX_ANSWER_MS);
      if (lengthComputable) onProgress?.(loaded / total);
    };
    request.onprogress = () => allow(MAX_ANSWER_MS);
    request.onloadend = () => clearTimeout(limit);
    request.onload = () =>
      resolve({
        status: request.status,
        body: request.response as Blob,
        header: (name) => request.getResponseHeader(name),
      });
    request.onerror = () => reject(new TypeError('The connection was lost'));
    request.onabort = () => reject(aborted());
    const stop = (reason: DOMException) => {
      request.abort();
      reject(reason);
    };
    signal?.addEventListener('abort', () => stop(aborted()), { once: true });
    allow(MAX_PAUSE_MS);
    request.send(form);
  });
}

/** A page is not from the API: a network asks to sign in. Other types are fine: the storage may name its own. */
function refusePage(type: string | null) {
  if (isPage(type)) throw new TypeError('A web page');
}

const isPage = (type: string | null) => type?.includes('html') ?? false;

/** Anything but JSON is not from the API: a network asks to sign in, or the connection broke off. */
function complete(text: string): unknown {
  const data = parsed(text);
  if (typeof data === 'string') throw new TypeError('Not JSON');
  return data;
}

/** The JSON that an answer contains, if it is JSON. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text || undefined;
  }
}

export type StreamEvent = { name: string; data: string };

/** Yields the account's events, and null for each keep-alive. Not an EventSource, which cannot send the token. */
export async function* readEvents(signal: AbortSignal): AsyncGenerator<StreamEvent | null> {
  const response = await authorized(
    (token) =>
      fetch(`${window.location.origin}/api/events`, {
        headers: { Accept: 'text/event-stream', ...bearer(token) },
        signal,
      }),
    textOfCopy,
  );
  if (!response.ok || !response.body) throw await refusalOf(response);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  try {
    while (true) {
      const { done, value } = await reader.read();
      if (done) return;
      const blocks = (rest + value).replaceAll('\r\n', '\n').split('\n\n');
      rest = blocks.pop() ?? '';
      yield* blocks.map(parseEvent);
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

function parseEvent(block: string): StreamEvent | null {
  const lines = block.split('\n');
  const field = (name: string) =>
    lines
      .filter((line) => line.startsWith(`${name}:`))
      .map((line) => line.slice(name.length + 1).trimStart());
  const data = field('data').join('\n');
  return data ? { name: field('event').join(''), data } : null;
}

/** Starts a new account for a user who deleted theirs. Returns false if the API refuses the token. */
export async function startAccount(token: string): Promise<boolean> {
  const url = `${window.location.origin}/api/user`;
  const response = await fetch(url, { method: 'POST', headers: bearer(token) });
  if (response.ok) return true;
  if (response.status === 401) return false;
  // As for other calls, a failure that may pass ends no session.
  throw await refusalOf(response);
}

/** Fetches the page itself, as the server has it now. */
export async function fetchPage(): Promise<string> {
  const response = await fetch(window.location.origin, { cache: 'no-store' });
  if (!response.ok) throw await refusalOf(response);
  return response.text();
}

/** Fetches a signed URL, which needs no token. */
export async function fetchFile(url: string, signal?: AbortSignal): Promise<Blob> {
  const stop = stopOf(signal);
  const answer = fetch(new URL(url, window.location.origin), { signal: stop.signal });
  const response = await within(MAX_PAUSE_MS, stop, answer);
  if (!response.ok) throw await refusalOf(response);
  refusePage(response.headers.get('Content-Type'));
  return readFile(response, stop);
}
