import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { anImage } from '@/testing/builders';
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
