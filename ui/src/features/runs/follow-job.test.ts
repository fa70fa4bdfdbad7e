import { HttpResponse, http } from 'msw';
import { expect, test } from 'vitest';
import type { Job } from '@/lib/api-types';
import { aJob } from '@/testing/builders';
import { server } from '@/testing/server';
import { followJob } from './follow-job';

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

test('parses events split across chunks and skips comments', async () => {
  const running = event(aJob({ state: 'running' }));
  server.use(
    http.get('*/api/jobs/:id/events', () =>
      stream(':keep-alive\n\n', running.slice(0, 30), running.slice(30), event(aJob({ state: 'done' }))),
    ),
  );
  expect(await statesOf('job-1')).toEqual(['running', 'done']);
});

test('reconnects when the stream ends before the job does', async () => {
  let connections = 0;
  server.use(
    http.get('*/api/jobs/:id/events', () => {
      connections += 1;
      return stream(event(aJob({ state: connections === 1 ? 'running' : 'done' })));
    }),
  );
  expect(await statesOf('job-1')).toEqual(['running', 'done']);
});

test('polls the job when every stream fails', async () => {
  server.use(
    http.get('*/api/jobs/:id/events', () => new HttpResponse(null, { status: 502 })),
    http.get('*/api/jobs/:id', () => HttpResponse.json(aJob({ state: 'done' }))),
  );
  expect(await statesOf('job-1')).toEqual(['done']);
});

test('gives up on an unknown job', async () => {
  server.use(http.get('*/api/jobs/:id/events', () => new HttpResponse(null, { status: 404 })));
  await expect(statesOf('job-1')).rejects.toThrow('HTTP error! status: 404');
});
