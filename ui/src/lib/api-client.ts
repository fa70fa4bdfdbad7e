import createClient, { type Middleware } from 'openapi-fetch';
import type { paths } from '@/api/schema';

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
export const connectionLost = 'The connection was lost. Please try again.';

/** Authorizes the calls. Set once by the session, so that this file does not depend on the identity provider. */
let credentials: { token: () => Promise<string | null>; onRefused: () => void } = {
  token: async () => null,
  onRefused: () => {},
};

export function setCredentials(next: typeof credentials) {
  credentials = next;
}

const authorize: Middleware = {
  async onRequest({ request }) {
    const token = await credentials.token();
    if (token) request.headers.set('Authorization', `Bearer ${token}`);
    return request;
  },
  onResponse({ request, response }) {
    if (response.status === 401 && request.headers.has('Authorization')) credentials.onRefused();
    return response;
  },
};

export const api = createClient<paths>({
  // Absolute: outside a page, as in tests, a Request has no base URL.
  baseUrl: window.location.origin,
  // Looked up for each call, so that tests can intercept it.
  fetch: (request) => globalThis.fetch(request),
});
api.use(authorize);

type Answer<T> = { data?: T; error?: unknown; response: Response };

export function unwrap<T>({ data, error, response }: Answer<T>): T {
  if (response.ok) return data as T;
  throw toApiError(response.status, error, (name) => response.headers.get(name));
}

function toApiError(status: number, body: unknown, header: (name: string) => string | null): ApiError {
  const problem =
    typeof body === 'object' && body !== null ? (body as { detail?: unknown; code?: unknown }) : {};
  const text = typeof body === 'string' ? body : JSON.stringify(body ?? '');
  const retryAfter = Number(header('Retry-After'));
  return new ApiError(
    status,
    typeof problem.detail === 'string' ? problem.detail : '',
    text,
    Number.isFinite(retryAfter) && retryAfter > 0 ? retryAfter : null,
    typeof problem.code === 'string' ? problem.code : null,
  );
}

export function isProblem(error: unknown, status: number, detail?: string): error is ApiError {
  return (
    error instanceof ApiError && error.status === status && (detail === undefined || error.detail === detail)
  );
}

/** The routes of visitors' runs. */
export type VisitorPath = '/api/free/remove-bg-fr' | '/api/free/upscale-fr';

type SendFileOptions = {
  onProgress?: (fraction: number) => void;
  signal?: AbortSignal;
  headers?: Record<string, string>;
  /** Form fields in addition to the file. */
  fields?: Record<string, string>;
};

/** Sends one file as multipart. Uses XMLHttpRequest because fetch does not report upload progress. */
export async function sendFile(
  path: '/api/images/upload' | `/api/magic-images/fix/${string}` | VisitorPath,
  file: File,
  { onProgress, signal, headers = {}, fields = {} }: SendFileOptions = {},
): Promise<{ status: number; body: Blob }> {
  const token = await credentials.token();
  const form = new FormData();
  form.append('file', file);
  for (const [name, value] of Object.entries(fields)) form.append(name, value);

  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open('POST', path);
    request.responseType = 'blob';
    if (token) request.setRequestHeader('Authorization', `Bearer ${token}`);
    for (const [name, value] of Object.entries(headers)) request.setRequestHeader(name, value);
    request.upload.onprogress = (event) => {
      if (event.lengthComputable) onProgress?.(event.loaded / event.total);
    };
    request.onload = async () => {
      const body = request.response as Blob;
      if (request.status >= 200 && request.status < 300) return resolve({ status: request.status, body });
      if (request.status === 401 && token) credentials.onRefused();
      reject(toApiError(request.status, await readProblem(body), (name) => request.getResponseHeader(name)));
    };
    request.onerror = () => reject(new TypeError('The connection was lost'));
    request.onabort = () => reject(new DOMException('Aborted', 'AbortError'));
    signal?.addEventListener('abort', () => request.abort(), { once: true });
    request.send(form);
  });
}

async function readProblem(body: Blob): Promise<unknown> {
  const text = await body.text();
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** Yields the data of a job's events. Not an EventSource, which cannot send the token in a header. */
export async function* readJobEvents(jobId: string, signal: AbortSignal): AsyncGenerator<string> {
  const token = await credentials.token();
  const response = await globalThis.fetch(
    `${window.location.origin}/api/jobs/${encodeURIComponent(jobId)}/events`,
    {
      headers: { Accept: 'text/event-stream', ...(token ? { Authorization: `Bearer ${token}` } : {}) },
      signal,
    },
  );
  if (!response.ok || !response.body) {
    throw toApiError(response.status, await response.text(), (name) => response.headers.get(name));
  }
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  try {
    while (true) {
      const { done, value } = await reader.read();
      if (done) return;
      const blocks = (rest + value).replaceAll('\r\n', '\n').split('\n\n');
      rest = blocks.pop() ?? '';
      for (const block of blocks) {
        const data = block
          .split('\n')
          .filter((line) => line.startsWith('data:'))
          .map((line) => line.slice(5).trimStart())
          .join('\n');
        if (data) yield data;
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

/** Fetches a signed URL, which needs no token. */
export async function fetchFile(url: string): Promise<Blob> {
  const response = await globalThis.fetch(new URL(url, window.location.origin));
  if (!response.ok) throw toApiError(response.status, await response.text(), () => null);
  return response.blob();
}
