import { HttpResponse, http } from 'msw';
import { afterEach, expect, test, vi } from 'vitest';
import type { Job } from '@/lib/api-types';
import { aJob } from '@/testing/builders';
import { server } from '@/testing/server';
import { followJob } from './follow-job';

type Answer = () => Response | Promise<Response>;

const answerWith = (state: Job['state']) => () => HttpResponse.json(aJob({ state }));

/** Follows a job that the server reads with these answers. */
async function statesOf(...answers: Answer[]): Promise<string[]> {
  server.use(http.get('*/api/jobs/:id', () => answers.shift()?.()));
  const states: string[] = [];
  await followJob('job-1', new AbortController().signal, (job) => states.push(job.state));
  return states;
}

afterEach(() => vi.useRealTimers());

test('reads the job until it is final', async () => {
  expect(await statesOf(answerWith('running'), answerWith('done'))).toEqual(['running', 'done']);
});

test('continues after a lost connection and an error of the server', async () => {
  const broken = () => new HttpResponse(null, { status: 502 });
  expect(await statesOf(HttpResponse.error, broken, answerWith('done'))).toEqual(['done']);
});

test('waits longer after each failure, and as long as the server asks', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'Date'] });
  const calls: number[] = [];
  const busy = (headers = {}) => {
    calls.push(Math.round(Date.now() / 1_000));
    return new HttpResponse(null, { status: 503, headers });
  };
  const asked = () => busy({ 'Retry-After': '20' });
  const states = statesOf(busy, busy, busy, asked, busy, answerWith('done'));
  for (let seconds = 0; seconds < 90; seconds += 1) {
    await vi.advanceTimersByTimeAsync(1_000);
    await new Promise((resolve) => setImmediate(resolve));
  }
  expect(await states).toEqual(['done']);
  const pauses = calls.slice(1).map((at, index) => at - (calls[index] ?? 0));
  expect(pauses).toEqual([1, 2, 4, 20]);
});

test('does not wait forever on a connection that slept with the phone', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'Date'] });
  const requests: Request[] = [];
  const onRequest = ({ request }: { request: Request }) => requests.push(request);
  server.events.on('request:start', onRequest);
  const sleeps = vi.fn(() => new Promise<Response>(() => {}));
  const states = statesOf(sleeps, answerWith('done'));
  await vi.waitFor(() => expect(sleeps).toHaveBeenCalled());
  await vi.advanceTimersByTimeAsync(600_000);
  expect(await states).toEqual(['done']);
  // A browser opens few connections to one server.
  expect(requests[0]?.signal.aborted).toBe(true);
  server.events.removeListener('request:start', onRequest);
});

test('gives up on an unknown job', async () => {
  const unknown = () => new HttpResponse(null, { status: 404 });
  await expect(statesOf(unknown)).rejects.toThrow('HTTP error! status: 404');
});
