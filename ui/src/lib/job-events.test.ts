import { HttpResponse, http } from 'msw';
import { expect, test } from 'vitest';
import { aJob } from '@/testing/builders';
import { server } from '@/testing/server';
import type { Job } from './api-types';
import { followJob } from './job-events';

const event = (job: Job) => `event: job\r\ndata: ${JSON.stringify(job)}\r\n\r\n`;
const stream = (...parts: string[]) =>
  new HttpResponse(
    new ReadableStream({
      start(controller) {
        for (const part of parts) controller.enqueue(new TextEncoder().encode(part));
        controller.close();
      },
    }),
    { headers: { 'Content-Type': 'text/event-stream' } },
  );

async function statesOf(jobId: string): Promise<string[]> {
  const states: string[] = [];
  await followJob(jobId, new AbortController().signal, (job) => states.push(job.state));
  return states;
}

test('reads events that arrive in pieces, and comments in between', async () => {
  const running = event(aJob({ state: 'running' }));
  server.use(
    http.get('*/api/jobs/:id/events', () =>
      stream(':keep-alive\n\n', running.slice(0, 30), running.slice(30), event(aJob({ state: 'done' }))),
    ),
  );
  expect(await statesOf('job-1')).toEqual(['running', 'done']);
});

test('comes back when a stream ends before the job does', async () => {
  let visits = 0;
  server.use(
    http.get('*/api/jobs/:id/events', () => {
      visits += 1;
      return stream(event(aJob({ state: visits === 1 ? 'running' : 'done' })));
    }),
  );
  expect(await statesOf('job-1')).toEqual(['running', 'done']);
});

test('asks for the job when no stream gets through', async () => {
  server.use(
    http.get('*/api/jobs/:id/events', () => new HttpResponse(null, { status: 502 })),
    http.get('*/api/jobs/:id', () => HttpResponse.json(aJob({ state: 'done' }))),
  );
  expect(await statesOf('job-1')).toEqual(['done']);
});

test('gives up on a job that is unknown', async () => {
  server.use(http.get('*/api/jobs/:id/events', () => new HttpResponse(null, { status: 404 })));
  await expect(statesOf('job-1')).rejects.toThrow('HTTP error! status: 404');
});
