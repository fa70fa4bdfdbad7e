import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { anImage } from '@/testing/builders';
import { api, fetchFile, unwrap } from './api-client';
import { sendImage } from './send-image';
import { withRetries } from './with-retries';

/** A request of the browser whose progress the test decides. */
class SlowRequest {
  status = 200;
  // jsdom reads a Blob with the timers that the test stops.
  response = { text: async () => JSON.stringify(anImage()) };
  upload = { onprogress: (_: Partial<ProgressEvent>) => {} };
  onprogress = () => {};
  onload = () => {};
  onloadend = () => {};
  readonly headers: Record<string, string> = {};
  readonly open = () => {};
  readonly send = () => void requests.push(this);
  readonly abort = vi.fn(() => this.onloadend());
  readonly getResponseHeader = () => null;

  setRequestHeader(name: string, value: string) {
    this.headers[name] = value;
  }

  progress(loaded: number) {
    this.upload.onprogress({ lengthComputable: true, loaded, total: 100 });
  }

  answer() {
    this.onload();
    this.onloadend();
  }
}

let requests: SlowRequest[];

const file = new File(['pixels'], 'photo.jpg');
const send = (onProgress = () => {}) => sendImage(file, { signal: new AbortController().signal, onProgress });
const seconds = (count: number) => vi.advanceTimersByTimeAsync(count * 1_000);

beforeEach(() => {
  requests = [];
  vi.stubGlobal('XMLHttpRequest', SlowRequest);
  vi.useFakeTimers();
});

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

test('an upload ends that stands still for 30 seconds', async () => {
  const sent = expect(send()).rejects.toMatchObject({ name: 'TimeoutError' });
  await seconds(20);
  requests[0]?.progress(10);
  await seconds(29);
  expect(requests[0]?.abort).not.toHaveBeenCalled();
  await seconds(1);
  await sent;
  expect(requests[0]?.abort).toHaveBeenCalled();
});

test('an upload goes on as long as it makes progress, and its answer may take two minutes', async () => {
  const onProgress = vi.fn();
  const sent = send(onProgress);
  await seconds(0);
  for (let part = 10; part <= 100; part += 10) {
    await seconds(29);
    requests[0]?.progress(part);
  }
  expect(onProgress).toHaveBeenLastCalledWith(1);
  await seconds(119);
  // The answer has begun to arrive.
  requests[0]?.onprogress();
  await seconds(119);
  requests[0]?.answer();
  expect(await sent).toMatchObject({ id: 'image-1' });
  expect(vi.getTimerCount()).toBe(0);
});

test('an upload ends whose answer does not come', async () => {
  const sent = expect(send()).rejects.toMatchObject({ name: 'TimeoutError' });
  await seconds(0);
  requests[0]?.progress(100);
  await seconds(120);
  await sent;
});

test('an upload on a dead connection is repeated, and not stored twice', async () => {
  const sent = withRetries(new AbortController().signal, () => {}, send);
  await seconds(30);
  await seconds(1);
  requests[1]?.progress(100);
  requests[1]?.answer();
  expect(await sent).toMatchObject({ id: 'image-1' });
  const keys = requests.map(({ headers }) => headers['Idempotency-Key']);
  expect(keys).toEqual([expect.any(String), keys[0]]);
});

/** A server that answers when the test says so, as long as nobody gives up. */
function silentServer() {
  let answer = (_: Response) => {};
  const fetched = vi.fn(
    (_: URL, { signal }: RequestInit = {}) =>
      new Promise<Response>((resolve, reject) => {
        answer = resolve;
        signal?.addEventListener('abort', () => reject(signal.reason));
      }),
  );
  vi.stubGlobal('fetch', fetched);
  return {
    fetched,
    answer: (response: Response) => answer(response),
    signal: () => fetched.mock.lastCall?.[1]?.signal as AbortSignal,
  };
}

describe('a read', () => {
  test('ends that is not answered for 20 seconds', async () => {
    const { fetched } = silentServer();
    const settled = vi.fn();
    const read = expect(api.GET('/api/config').finally(settled)).rejects.toMatchObject({
      name: 'TimeoutError',
    });
    await seconds(19);
    expect(settled).not.toHaveBeenCalled();
    await seconds(1);
    await read;
    expect(fetched.mock.lastCall?.[1]?.signal?.aborted).toBe(true);
  });

  test('may take longer once its answer has begun', async () => {
    const { answer } = silentServer();
    const read = api.GET('/api/config');
    await seconds(19);
    let finish = () => {};
    const body = new ReadableStream({
      start: (controller) => {
        finish = () => {
          controller.enqueue(new TextEncoder().encode('{}'));
          controller.close();
        };
      },
    });
    answer(new Response(body));
    await seconds(60);
    expect(vi.getTimerCount()).toBe(0);
    finish();
    expect(await read).toMatchObject({ data: {} });
  });

  test('ends when its caller gives up', async () => {
    silentServer();
    const stop = new AbortController();
    const read = expect(api.GET('/api/config', { signal: stop.signal })).rejects.toMatchObject({
      name: 'AbortError',
    });
    await seconds(1);
    stop.abort();
    await read;
    await expect(api.GET('/api/config', { signal: stop.signal })).rejects.toMatchObject({
      name: 'AbortError',
    });
  });

  test.each([
    ['a change', () => api.DELETE('/api/keys/{keyId}', { params: { path: { keyId: 'a' } } })],
    ['a download', () => api.GET('/api/user/export', { parseAs: 'blob' })],
  ])('is not %s, which may take longer', async (_, call) => {
    const { answer } = silentServer();
    const called = call();
    await seconds(60);
    answer(new Response('{}'));
    expect((await called).response.ok).toBe(true);
  });
});

describe.each([
  ['a stored file', 30, () => fetchFile('/api/files/a')],
  [
    'a file that the API makes',
    120,
    async () => unwrap<Blob>(await api.GET('/api/user/export', { parseAs: 'blob' })),
  ],
])('%s', (_, maxSeconds, read) => {
  test('ends that is not answered', async () => {
    silentServer();
    const settled = vi.fn();
    const file = expect(read().finally(settled)).rejects.toMatchObject({ name: 'TimeoutError' });
    await seconds(maxSeconds - 1);
    expect(settled).not.toHaveBeenCalled();
    await seconds(1);
    await file;
  });

  test('goes on as long as bytes arrive, and ends if it stands still for 30 seconds', async () => {
    const { answer, signal } = silentServer();
    const settled = vi.fn();
    const file = expect(read().finally(settled)).rejects.toMatchObject({ name: 'TimeoutError' });
    await seconds(1);
    const body = aBody(signal());
    answer(new Response(body.stream));
    for (let part = 0; part < 10; part += 1) {
      await seconds(29);
      body.send('part');
    }
    await seconds(29);
    expect(settled).not.toHaveBeenCalled();
    await seconds(1);
    await file;
  });

  test('arrives with its type', async () => {
    const { answer, signal } = silentServer();
    const file = read();
    await seconds(1);
    const body = aBody(signal());
    answer(new Response(body.stream, { headers: { 'Content-Type': 'image/png' } }));
    body.send('one ');
    body.send('two');
    body.close();
    expect((await file).type).toBe('image/png');
    expect(await (await file).text()).toBe('one two');
    expect(vi.getTimerCount()).toBe(0);
  });
});

/** A body that fails when its request is aborted, as Firefox's does: not with the reason of the abort. */
function aBody(signal: AbortSignal) {
  let body: ReadableStreamDefaultController<Uint8Array>;
  const stream = new ReadableStream<Uint8Array>({
    start: (controller) => {
      body = controller;
    },
  });
  signal.addEventListener('abort', () =>
    body.error(new DOMException('The operation was aborted.', 'AbortError')),
  );
  return {
    stream,
    send: (text: string) => body.enqueue(new TextEncoder().encode(text)),
    close: () => body.close(),
  };
}
