import { screen, waitFor, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { delay, HttpResponse, http } from 'msw';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import { readImageSize } from '@/lib/image-size';
import { aFile, choose, resetBatches, rowOf, runs, start, three } from '@/testing/batch';
import { MockApi } from '@/testing/mock-api';
import { renderApp } from '@/testing/render-app';
import { server } from '@/testing/server';
import { shortenTimeout } from '@/testing/shorten-timeout';

// jsdom cannot decode images or save files.
vi.mock('@/lib/image-size', () => ({ readImageSize: vi.fn() }));
vi.mock('@/lib/download', () => ({ saveFile: vi.fn() }));

beforeEach(resetBatches);

describe('interruptions of a batch', () => {
  test('warns about too few credits before the start', async () => {
    const api = new MockApi();
    api.user.credits = 12;
    renderApp('/remove-background', { api, signedIn: true });
    await choose(three());
    expect(
      await screen.findByText(/You have enough credits for the first 2 of 3. We won’t start the others./),
    ).toBeVisible();
    expect(screen.getByRole('button', { name: 'Start 2 runs' })).toBeEnabled();
    expect(screen.getByRole('link', { name: 'Get more credits' })).toHaveAttribute('href', '/pricing');
  });

  test('stops sending when the credits run out, and keeps finished results', async () => {
    const { api, queryClient } = renderApp('/remove-background', { signedIn: true });
    let asked = 0;
    server.use(
      http.post('*/api/rmbg-images/remove-bg-ai', () => {
        asked += 1;
        if (asked === 1) return;
        api.user.credits = 0;
        return HttpResponse.json({ detail: 'Not enough credits' }, { status: 402 });
      }),
    );
    await choose([...three(), aFile('four.png'), aFile('five.png')]);
    await start(4);
    expect(await screen.findByText('1 of 5 done · 4 not started')).toBeVisible();
    expect(screen.getAllByText('Not started: not enough credits')).toHaveLength(4);
    expect(await screen.findByRole('link', { name: 'Get more credits' })).toHaveAttribute('href', '/pricing');
    expect(screen.getByRole('button', { name: 'Download all (ZIP)' })).toBeEnabled();
    // Two files were being sent when the credits ran out; the others were never sent, and would be lost.
    expect(api.images.length).toBeLessThanOrEqual(3);
    const leaving = new Event('beforeunload', { cancelable: true });
    window.dispatchEvent(leaving);
    expect(leaving.defaultPrevented).toBe(true);

    // Bought in another tab.
    api.user.credits = 20;
    void queryClient.invalidateQueries({ queryKey: ['user'] });
    await waitFor(() => expect(screen.queryByRole('link', { name: 'Get more credits' })).toBeNull());
    expect(screen.getByRole('button', { name: 'Retry all (4)' })).toBeVisible();
  });

  test('sends two files at the same time again after Retry all', async () => {
    renderApp('/remove-background', { signedIn: true });
    server.use(http.post('*/api/images/upload', () => new HttpResponse(null, { status: 500 })));
    await choose(three());
    await start(3);
    const retry = await screen.findByRole('button', { name: 'Retry all (3)' });
    server.use(http.post('*/api/images/upload', () => delay('infinite')));
    await userEvent.click(retry);
    expect(screen.getAllByRole('progressbar', { name: /^Progress of/ })).toHaveLength(2);
  });

  test('shows why a file failed, and retries it alone', async () => {
    const { api } = renderApp('/remove-background', { signedIn: true });
    server.use(
      http.post('*/api/images/upload', () => HttpResponse.json({ detail: 'Not today' }, { status: 403 }), {
        once: true,
      }),
    );
    await choose([aFile('one.png'), aFile('two.png')]);
    await start(2);
    expect(await screen.findByText('1 of 2 done · 1 failed')).toBeVisible();
    expect(rowOf('one.png')).toHaveTextContent('Not today');
    await userEvent.click(screen.getByRole('button', { name: 'Retry one.png' }));
    expect(await screen.findByText('2 of 2 done')).toBeVisible();
    expect(runs(api)).toHaveLength(2);
  });

  test('lists the files with a problem first, and leaves one that is retried where it is', async () => {
    vi.mocked(readImageSize)
      .mockResolvedValueOnce({ x: 800, y: 600 })
      .mockResolvedValueOnce({ x: 9000, y: 1 });
    renderApp('/remove-background', { signedIn: true });
    const list = await choose([...three(), aFile('four.png')]);
    const names = () =>
      within(list)
        .getAllByTitle(/\.png$/)
        .map(({ title }) => title);
    await waitFor(() => expect(names()).toEqual(['two.png', 'one.png', 'three.png', 'four.png']));
    let sent = 0;
    const refuseSecond = http.post('*/api/images/upload', () => {
      sent += 1;
      return sent === 2 ? HttpResponse.json({ detail: 'Not today' }, { status: 403 }) : undefined;
    });
    server.use(refuseSecond);
    await start(3);
    expect(await screen.findByText('2 of 3 done · 1 failed')).toBeVisible();
    expect(names()).toEqual(['two.png', 'three.png', 'one.png', 'four.png']);
    await userEvent.click(screen.getByRole('button', { name: 'Retry three.png' }));
    expect(await screen.findByText('3 of 3 done')).toBeVisible();
    expect(names()).toEqual(['two.png', 'three.png', 'one.png', 'four.png']);
  });

  test.each([
    ['Retry one.png', () => rowOf('one.png')],
    ['Retry all (2)', () => screen.getByRole('heading', { name: '2 images' })],
  ])('keeps the focus in the batch after “%s”', async (name, focused) => {
    renderApp('/remove-background', { signedIn: true });
    server.use(
      http.post('*/api/images/upload', () => HttpResponse.json({ detail: 'Not today' }, { status: 403 })),
    );
    await choose([aFile('one.png'), aFile('two.png')]);
    await start(2);
    expect(await screen.findByText('0 of 2 done · 2 failed')).toBeVisible();
    await userEvent.click(screen.getByRole('button', { name }));
    expect(focused()).toHaveFocus();
  });

  test('offers no retry where the same file would fail again', async () => {
    const { api } = renderApp('/remove-background', { signedIn: true });
    server.use(
      http.post(
        '*/api/images/upload',
        () => HttpResponse.json({ detail: 'The file is damaged' }, { status: 422 }),
        { once: true },
      ),
      http.post(
        '*/api/rmbg-images/remove-bg-ai',
        () => {
          const failure = { code: 'image_without_subject', detail: 'There is no subject' };
          return HttpResponse.json(api.startJob({ tool: 'remove-background', state: 'failed', failure }), {
            status: 202,
          });
        },
        { once: true },
      ),
    );
    await choose([aFile('one.png'), aFile('two.png'), aFile('three.png')]);
    await start(3);
    expect(await screen.findByText('1 of 3 done · 2 failed')).toBeVisible();
    expect(screen.queryByRole('button', { name: /Retry/ })).toBeNull();
  });

  test.each([
    [
      'was deleted before its run',
      (api: MockApi, imageId: string | null) => {
        api.images = api.images.filter(({ id }) => id !== imageId);
        return HttpResponse.json({ detail: 'Image not found' }, { status: 404 });
      },
    ],
    [
      // The API still has its image, and would answer a repeated upload with it.
      'is lost',
      (api: MockApi) => {
        const failure = { code: 'image_missing', detail: 'The picture is gone' };
        return HttpResponse.json(api.startJob({ state: 'failed', failure }), { status: 202 });
      },
    ],
  ])('uploads a file again, with a new key, whose picture %s', async (_, answer) => {
    const { api } = renderApp('/remove-background', { signedIn: true });
    const keys: (string | null)[] = [];
    server.use(
      http.post('*/api/images/upload', ({ request }) => {
        keys.push(request.headers.get('Idempotency-Key'));
      }),
      http.post(
        '*/api/rmbg-images/remove-bg-ai',
        ({ request }) => answer(api, new URL(request.url).searchParams.get('imageId')),
        { once: true },
      ),
    );
    await choose([aFile('one.png'), aFile('two.png')]);
    await start(2);
    expect(await screen.findByText('1 of 2 done · 1 failed')).toBeVisible();
    await userEvent.click(screen.getByRole('button', { name: /^Retry \S+\.png$/ }));
    expect(await screen.findByText('2 of 2 done')).toBeVisible();
    expect(new Set(keys).size).toBe(3);
  });

  test('retries when the server is busy', async () => {
    renderApp('/remove-background', { signedIn: true });
    server.use(
      http.post(
        '*/api/images/upload',
        () => HttpResponse.json({ detail: 'Slow down' }, { status: 429, headers: { 'Retry-After': '1' } }),
        { once: true },
      ),
    );
    await choose([aFile('one.png'), aFile('two.png')]);
    await start(2);
    expect(await screen.findByText(/The server is busy\./)).toBeVisible();
    expect(await screen.findByText('2 of 2 done')).toBeVisible();
  });

  test('cancels all runs', async () => {
    const api = Object.assign(new MockApi(), { stepMs: 400 });
    renderApp('/remove-background', { api, signedIn: true });
    await choose(three());
    await start(3);
    await waitFor(() => expect(runs(api)).toHaveLength(3));
    await userEvent.click(await screen.findByRole('button', { name: 'Cancel all' }));
    expect(await screen.findByText('0 of 3 done · 3 canceled')).toBeVisible();
    expect(api.jobs.map(({ state }) => state)).toEqual(['cancelled', 'cancelled', 'cancelled']);
    await userEvent.click(screen.getByRole('button', { name: 'New batch' }));
    expect(await screen.findByRole('button', { name: 'Choose files' })).toBeVisible();
  });

  test('reports a failed cancellation and keeps following the runs', async () => {
    const api = Object.assign(new MockApi(), { stepMs: 400 });
    renderApp('/remove-background', { api, signedIn: true });
    await choose([aFile('one.png'), aFile('two.png')]);
    await start(2);
    await waitFor(() => expect(runs(api)).toHaveLength(2));
    server.use(http.delete('*/api/jobs/:id', () => HttpResponse.error()));
    await userEvent.click(await screen.findByRole('button', { name: 'Cancel all' }));
    expect(await screen.findByText('Failed to cancel all runs, try again later')).toBeVisible();
    expect(await screen.findByRole('button', { name: 'Cancel all' })).toBeEnabled();
  });

  test('can cancel all runs again after the connection was dead', async () => {
    shortenTimeout(30_000);
    const api = Object.assign(new MockApi(), { stepMs: 400 });
    renderApp('/remove-background', { api, signedIn: true });
    await choose([aFile('one.png'), aFile('two.png')]);
    await start(2);
    await waitFor(() => expect(runs(api)).toHaveLength(2));
    server.use(http.delete('*/api/jobs/:id', () => delay('infinite'), { once: true }));
    await userEvent.click(await screen.findByRole('button', { name: 'Cancel all' }));
    expect(await screen.findByText('Failed to cancel all runs, try again later')).toBeVisible();
    await userEvent.click(screen.getByRole('button', { name: 'Cancel all' }));
    expect(await screen.findByText('0 of 2 done · 2 canceled')).toBeVisible();
  });

  test('does not retry a postponed run that was canceled', async () => {
    renderApp('/remove-background', { signedIn: true });
    let answer = () => {};
    const heldBack = new Promise<void>((resolve) => {
      answer = resolve;
    });
    let asked = 0;
    server.use(
      http.post('*/api/rmbg-images/remove-bg-ai', async () => {
        asked += 1;
        await heldBack;
        return HttpResponse.json({ detail: 'Slow down' }, { status: 429, headers: { 'Retry-After': '1' } });
      }),
    );
    await choose([aFile('one.png'), aFile('two.png')]);
    await start(2);
    await waitFor(() => expect(asked).toBe(2));
    await userEvent.click(screen.getByRole('button', { name: 'Cancel all' }));
    answer();
    expect(await screen.findByText('0 of 2 done · 2 canceled')).toBeVisible();
    await new Promise((resolve) => setTimeout(resolve, 1_200));
    expect(asked).toBe(2);
  });

  test('is counted in the top bar, and follows its runs without polls', async () => {
    const api = Object.assign(new MockApi(), { stepMs: 1_500 });
    renderApp('/remove-background', { api, signedIn: true });
    await choose(three());
    await start(3);
    expect(await screen.findByRole('button', { name: '3 running' })).toBeVisible();
    const before = api.calls.length;
    await new Promise((resolve) => setTimeout(resolve, 4_000));
    const polls = api.calls.slice(before).filter((call) => call === 'GET /api/jobs');
    expect(polls).toEqual([]);
    await userEvent.click(screen.getByRole('button', { name: 'Cancel all' }));
    await waitFor(() => expect(screen.queryByRole('button', { name: /running$/ })).toBeNull());
  });

  test('notices a run that ends before the answer to its start', async () => {
    const { api } = renderApp('/remove-background', { signedIn: true });
    server.use(
      http.post('*/api/rmbg-images/remove-bg-ai', async ({ request }) => {
        const imageId = new URL(request.url).searchParams.get('imageId');
        const job = api.runJob({ tool: 'remove-background', imageId });
        const queued = structuredClone(job);
        await waitFor(() => expect(job.state).toBe('done'));
        await new Promise((resolve) => setTimeout(resolve, 50));
        return HttpResponse.json(queued, { status: 202 });
      }),
    );
    await choose([aFile('one.png'), aFile('two.png')]);
    await start(2);
    expect(await screen.findByText('2 of 2 done')).toBeVisible();
  });

  test('polls its runs while the event stream is down', async () => {
    const api = Object.assign(new MockApi(), { isStreamBroken: true });
    renderApp('/remove-background', { api, signedIn: true });
    server.use(http.get('*/api/events', () => new HttpResponse(null, { status: 502 })));
    await choose([aFile('one.png'), aFile('two.png')]);
    await start(2);
    expect(await screen.findByText('2 of 2 done', {}, { timeout: 8_000 })).toBeVisible();
  });

  test('continues while another page is open', async () => {
    const api = Object.assign(new MockApi(), { stepMs: 150 });
    const { router } = renderApp('/remove-background', { api, signedIn: true });
    await choose(three());
    await start(3);
    await router.navigate('/pricing');
    await waitFor(() => expect(screen.queryByRole('heading', { name: '3 images' })).toBeNull());
    expect(api.results).toEqual([]);
    await waitFor(() => expect(api.results).toHaveLength(3), { timeout: 10_000 });
    await router.navigate('/remove-background');
    expect(await screen.findByText('3 of 3 done')).toBeVisible();
  });
});
