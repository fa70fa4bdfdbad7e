import { screen, waitFor } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { getResponse, HttpResponse, http } from 'msw';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import type { Job } from '@/lib/api-types';
import { aFile, choose, resetBatches, start } from '@/testing/batch';
import { aJob } from '@/testing/builders';
import { MockApi } from '@/testing/mock-api';
import { renderApp } from '@/testing/render-app';
import { server } from '@/testing/server';

// jsdom cannot decode images or save files.
vi.mock('@/lib/image-size', () => ({ readImageSize: vi.fn() }));
vi.mock('@/lib/download', () => ({ saveFile: vi.fn() }));

beforeEach(resetBatches);

describe('a batch whose answers are lost', () => {
  test('retries with the same key after lost responses', async () => {
    const { api } = renderApp('/remove-background', { signedIn: true });
    const lost: (string | null)[] = [];
    server.use(
      http.post('*/api/rmbg-images/remove-bg-ai', ({ request }) => {
        lost.push(request.headers.get('Idempotency-Key'));
        return HttpResponse.error();
      }),
    );
    await choose([aFile('one.png'), aFile('two.png')]);
    await start(2);
    // Ends the pauses.
    const network = setInterval(() => window.dispatchEvent(new Event('online')), 50);
    expect(await screen.findByText('0 of 2 done · 2 failed')).toBeVisible();
    clearInterval(network);
    expect(lost).toHaveLength(8);
    server.resetHandlers(...api.handlers());
    for (const button of screen.getAllByRole('button', { name: /^Retry \S+\.png$/ })) {
      await userEvent.click(button);
    }
    expect(await screen.findByText('2 of 2 done')).toBeVisible();
    expect(new Set(api.idempotencyKeys)).toEqual(new Set(lost));
    expect(api.images).toHaveLength(2);
  });

  test('runs a file again whose run has failed after lost responses', async () => {
    const { api } = renderApp('/remove-background', { signedIn: true });
    const failure = { code: 'internal_error', detail: 'Something went wrong' };
    const lost = new Set<string>();
    server.use(
      http.post('*/api/rmbg-images/remove-bg-ai', ({ request }) => {
        const key = request.headers.get('Idempotency-Key') ?? '';
        lost.add(key);
        api.jobOfKey.set(key, aJob({ id: key, state: 'failed', failure }));
        return HttpResponse.error();
      }),
    );
    await choose([aFile('one.png'), aFile('two.png')]);
    await start(2);
    // Ends the pauses.
    const network = setInterval(() => window.dispatchEvent(new Event('online')), 50);
    expect(await screen.findByText('0 of 2 done · 2 failed')).toBeVisible();
    clearInterval(network);
    server.resetHandlers(...api.handlers());
    await userEvent.click(screen.getByRole('button', { name: 'Retry all (2)' }));
    expect(await screen.findByText('2 of 2 done')).toBeVisible();
    expect(lost.size).toBe(2);
    const repeats = api.idempotencyKeys.filter((key) => lost.has(key));
    expect(repeats).toHaveLength(2);
    expect(new Set(repeats)).toEqual(lost);
    expect(new Set(api.idempotencyKeys).size).toBe(4);
    expect(api.idempotencyKeys).toHaveLength(4);
  });

  /** Loses the answers to all requests that start a run. Returns the keys of the requests. */
  function loseAnswers(startRun: (imageId: string | null, key: string) => void) {
    const keys: string[] = [];
    server.use(
      http.post('*/api/rmbg-images/remove-bg-ai', ({ request }) => {
        const key = request.headers.get('Idempotency-Key') ?? '';
        if (!keys.includes(key)) startRun(new URL(request.url).searchParams.get('imageId'), key);
        keys.push(key);
        return HttpResponse.error();
      }),
    );
    return keys;
  }

  test('shows the runs that start all the same', async () => {
    const { api } = renderApp('/remove-background', { signedIn: true });
    loseAnswers((imageId, idempotencyKey) => api.runJob({ imageId, idempotencyKey }));
    await choose([aFile('one.png'), aFile('two.png')]);
    await start(2);
    expect(await screen.findByText('2 of 2 done')).toBeVisible();
    await new Promise((resolve) => setTimeout(resolve, 1_500));
    expect(screen.getByText('2 of 2 done')).toBeVisible();
  });

  test('shows a run that is seen only after it was given up', async () => {
    const { api } = renderApp('/remove-background', { signedIn: true });
    const lost: Partial<Job>[] = [];
    loseAnswers((imageId, idempotencyKey) => lost.push({ imageId, idempotencyKey }));
    await choose([aFile('one.png'), aFile('two.png')]);
    await start(2);
    const network = setInterval(() => window.dispatchEvent(new Event('online')), 50);
    expect(await screen.findByText('0 of 2 done · 2 failed')).toBeVisible();
    clearInterval(network);
    for (const run of lost) api.runJob(run);
    expect(await screen.findByText('2 of 2 done')).toBeVisible();
  });

  test('does not take another run of an image for one of its own', async () => {
    const { api } = renderApp('/remove-background', { signedIn: true });
    loseAnswers((imageId) => api.runJob({ imageId, idempotencyKey: 'another' }));
    await choose([aFile('one.png'), aFile('two.png')]);
    await start(2);
    const network = setInterval(() => window.dispatchEvent(new Event('online')), 50);
    expect(await screen.findByText('0 of 2 done · 2 failed')).toBeVisible();
    clearInterval(network);
  });

  test('cancels them, and none of them is charged', async () => {
    const api = Object.assign(new MockApi(), { isStreamBroken: true });
    renderApp('/remove-background', { api, signedIn: true });
    const keys = loseAnswers((imageId, idempotencyKey) => api.startJob({ imageId, idempotencyKey }));
    await choose([aFile('one.png'), aFile('two.png')]);
    await start(2);
    await waitFor(() => expect(keys).toHaveLength(2));
    server.resetHandlers(...api.handlers());
    await userEvent.click(screen.getByRole('button', { name: 'Cancel all' }));
    expect(await screen.findByText('0 of 2 done · 2 canceled')).toBeVisible();
    await waitFor(() => expect(api.jobs.map(({ state }) => state)).toEqual(['cancelled', 'cancelled']));
    expect(api.idempotencyKeys).toEqual([]);
  });

  test('cancels a run that is seen after the click, and before its request fails', async () => {
    const { api } = renderApp('/remove-background', { signedIn: true });
    let lose = () => {};
    const answer = new Promise<void>((resolve) => {
      lose = resolve;
    });
    const lost: Partial<Job>[] = [];
    server.use(
      http.post('*/api/rmbg-images/remove-bg-ai', async ({ request }) => {
        const imageId = new URL(request.url).searchParams.get('imageId');
        lost.push({ imageId, idempotencyKey: request.headers.get('Idempotency-Key') });
        await answer;
        return HttpResponse.error();
      }),
    );
    await choose([aFile('one.png'), aFile('two.png')]);
    await start(2);
    await waitFor(() => expect(lost).toHaveLength(2));
    await userEvent.click(screen.getByRole('button', { name: 'Cancel all' }));
    for (const run of lost) api.startJob({ ...run, state: 'running' });
    expect((await screen.findAllByText(/Running|Working|%|Processing/)).length).toBeGreaterThan(0);
    lose();
    expect(await screen.findByText('0 of 2 done · 2 canceled')).toBeVisible();
    expect(api.jobs.map(({ state }) => state)).toEqual(['cancelled', 'cancelled']);
  });

  test('starts none of those that never arrived when they are canceled', async () => {
    const { api } = renderApp('/remove-background', { signedIn: true });
    const keys = loseAnswers(() => {});
    await choose([aFile('one.png'), aFile('two.png')]);
    await start(2);
    await waitFor(() => expect(keys).toHaveLength(2));
    server.resetHandlers(...api.handlers());
    await userEvent.click(screen.getByRole('button', { name: 'Cancel all' }));
    expect(await screen.findByText('0 of 2 done · 2 canceled')).toBeVisible();
    await new Promise((resolve) => setTimeout(resolve, 1_500));
    expect(screen.getByText('0 of 2 done · 2 canceled')).toBeVisible();
    expect([api.jobs, api.idempotencyKeys]).toEqual([[], []]);
  });

  test('sends a file whose answer was lost again without storing it twice', async () => {
    const { api } = renderApp('/remove-background', { signedIn: true });
    const stored = api.handlers();
    let isLost = false;
    server.use(
      http.post('*/api/images/upload', async ({ request }) => {
        if (isLost) return;
        isLost = true;
        await getResponse(stored, request.clone());
        return HttpResponse.error();
      }),
    );
    await choose([aFile('one.png'), aFile('two.png')]);
    await start(2);
    expect(await screen.findByText('2 of 2 done')).toBeVisible();
    expect(api.images).toHaveLength(2);
  });
});
