import { fireEvent, screen, waitFor, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { unzipSync } from 'fflate';
import { getResponse, HttpResponse, http } from 'msw';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import { type Batch, restoreBatches, useBatches } from '@/features/batch/batch-store';
import { removeBackground } from '@/features/catalog/remove-background';
import type { Job } from '@/lib/api-types';
import { saveFile } from '@/lib/download';
import { readImageSize } from '@/lib/image-size';
import { aConfig, aJob, anImage, aResult } from '@/testing/builders';
import { MockApi } from '@/testing/mock-api';
import { renderApp } from '@/testing/render-app';
import { server } from '@/testing/server';
import { aSignInPage } from '@/testing/sign-in-page';

// jsdom cannot decode images or save files.
vi.mock('@/lib/image-size', () => ({ readImageSize: vi.fn() }));
vi.mock('@/lib/download', () => ({ saveFile: vi.fn() }));

const aFile = (name: string, type = 'image/png') => new File(['bytes'], name, { type });
const three = () => [aFile('one.png'), aFile('two.png'), aFile('three.png')];

async function choose(files: File[]) {
  await userEvent.upload(await screen.findByLabelText('Image file'), files);
  return screen.findByRole('list', { name: /^\d+ images?$/ });
}

const rowOf = (name: string) => {
  const row = screen.getByText(name).closest('li');
  if (!row) throw new Error(`no row for ${name}`);
  return row;
};
const start = async (count: number) => {
  const button = await screen.findByRole('button', {
    name: count === 1 ? 'Start 1 run' : `Start ${count} runs`,
  });
  await waitFor(() => expect(button).toBeEnabled());
  await userEvent.click(button);
};
const runs = (api: MockApi, path = '/api/rmbg-images/remove-bg-ai') =>
  api.calls.filter((call) => call.startsWith(`POST ${path}`));

beforeEach(() => {
  useBatches.setState({}, true);
  sessionStorage.clear();
  vi.mocked(readImageSize).mockReset().mockResolvedValue({ x: 800, y: 600 });
  vi.mocked(saveFile).mockReset();
});

describe('a batch of files', () => {
  test('is listed with its total price, and nothing is sent before the start', async () => {
    const { api } = renderApp('/remove-background', { signedIn: true });
    const list = await choose(three());
    await waitFor(() => expect(within(list).getAllByText('Ready')).toHaveLength(3));
    expect(screen.getByText('3 images × 5 credits = 15 credits')).toBeVisible();
    expect(await screen.findByText('You have 20 credits.')).toBeVisible();
    expect(api.calls.filter((call) => call.startsWith('POST'))).toEqual([]);
  });

  test('uploads and runs each file, and refetches the credits', async () => {
    const { api } = renderApp('/remove-background', { signedIn: true });
    await choose(three());
    await start(3);
    expect(await screen.findByText('3 of 3 done')).toBeVisible();
    expect(api.images).toHaveLength(3);
    expect(runs(api)).toHaveLength(3);
    expect(new Set(api.idempotencyKeys).size).toBe(3);
    expect(await screen.findByRole('link', { name: 'credits 5' })).toBeVisible();
    const page = screen.getByRole('link', { name: 'Open one.png' }).getAttribute('href');
    expect(page).toMatch(/^\/remove-background\/image-\d+$/);
  });

  test('takes more files that are dropped on it, until it starts', async () => {
    renderApp('/remove-background', { signedIn: true });
    const list = await choose(three());
    const drop = (name: string, type = 'image/png') =>
      fireEvent.drop(list, {
        dataTransfer: { files: [new File(['bytes'], name, { type })], types: ['Files'] },
      });
    drop('four.png');
    drop('notes.txt', 'text/plain');
    // A thumbnail of the list that is dragged by accident.
    fireEvent.drop(list, {
      dataTransfer: {
        files: [new File(['bytes'], 'one.png', { type: 'image/png' })],
        types: ['Files', 'text/uri-list', 'text/html'],
      },
    });
    await waitFor(() => expect(within(list).getAllByText('Ready')).toHaveLength(4));
    expect(within(list).getByText('four.png')).toBeVisible();
    await start(4);
    drop('five.png');
    expect(await screen.findByText(/of 4 done/)).toBeVisible();
    expect(screen.queryByText('five.png')).toBeNull();
  });

  test('has one action for all files, and free runs cost nothing', async () => {
    const { api } = renderApp('/upscale', { signedIn: true });
    await choose(three());
    expect(await screen.findByText('3 images × 3 credits = 9 credits')).toBeVisible();
    await userEvent.click(screen.getByRole('radio', { name: /^Upscale 4X/ }));
    expect(screen.getByText('3 images × 6 credits = 18 credits')).toBeVisible();
    await userEvent.click(screen.getByRole('radio', { name: /^Free Upscale/ }));
    expect(screen.getByText('3 images, free')).toBeVisible();
    await start(3);
    expect(await screen.findByText('3 of 3 done')).toBeVisible();
    expect(runs(api, '/api/upscale/upscale-free')).toHaveLength(3);
    expect(api.user.credits).toBe(20);
  });

  test('rejects a file that is too large, with the reason, and runs the others', async () => {
    vi.mocked(readImageSize).mockResolvedValueOnce({ x: 1441, y: 10 });
    const { api } = renderApp('/upscale', { signedIn: true });
    await choose(three());
    expect(await screen.findByText('Image dimensions too big (Max 1440x1440)')).toBeVisible();
    expect(await screen.findByText('2 images × 3 credits = 6 credits')).toBeVisible();
    expect(screen.getByRole('heading', { name: '2 images' })).toBeVisible();
    await start(2);
    expect(await screen.findByText('2 of 2 done')).toBeVisible();
    expect(api.images).toHaveLength(2);
  });

  test('rejects a file that this server does not read before it is sent', async () => {
    const config = aConfig({ features: { payments: false, heic: false, avif: true } });
    renderApp('/upscale', { api: Object.assign(new MockApi(), { config }), signedIn: true });
    // The dialog does not offer the file, but a system may let people choose it.
    const user = userEvent.setup({ applyAccept: false });
    await user.upload(await screen.findByLabelText('Image file'), [aFile('one.heic', ''), aFile('two.png')]);
    expect(await screen.findByText('HEIC files cannot be read here.', { exact: false })).toBeVisible();
    expect(screen.getByRole('heading', { name: '1 image' })).toBeVisible();
  });

  test('shows no preview for a file that is not an image', async () => {
    vi.mocked(readImageSize).mockRejectedValueOnce(new Error('not decoded'));
    renderApp('/upscale', { signedIn: true });
    await choose([aFile('broken.png'), aFile('two.png')]);
    expect(await screen.findByText(/can’t read this file as an image/)).toBeVisible();
    expect(rowOf('broken.png').querySelector('img')).toBeNull();
    expect(rowOf('two.png').querySelector('img')).not.toBeNull();
  });

  test('allows files to be removed, and closes with the last one', async () => {
    renderApp('/remove-background', { signedIn: true });
    await choose([aFile('one.png'), aFile('two.png')]);
    await userEvent.click(screen.getByRole('button', { name: 'Remove one.png' }));
    expect(screen.queryByText('one.png')).toBeNull();
    expect(screen.getByRole('heading', { name: '1 image' })).toHaveFocus();
    await userEvent.click(screen.getByRole('button', { name: 'Remove two.png' }));
    expect(await screen.findByRole('button', { name: 'Choose files' })).toBeVisible();
  });

  test('removes one file with a double click, not two', async () => {
    renderApp('/remove-background', { signedIn: true });
    await choose([aFile('one.png'), aFile('two.png')]);
    fireEvent.click(screen.getByRole('button', { name: 'Remove one.png' }), { detail: 1 });
    fireEvent.click(screen.getByRole('button', { name: 'Remove two.png' }), { detail: 2 });
    expect(screen.queryByText('one.png')).toBeNull();
    expect(screen.getByText('two.png')).toBeVisible();
  });

  test('ignores files that are not images, and does not start for a single image', async () => {
    renderApp('/remove-background', { signedIn: true });
    await userEvent.upload(
      await screen.findByLabelText('Image file'),
      [aFile('one.png'), aFile('notes.txt', 'text/plain')],
      { applyAccept: false },
    );
    expect(await screen.findByRole('img', { name: 'Preview of one.png' })).toBeVisible();
  });
});

describe('interruptions of a batch', () => {
  test('warns about too few credits before the start', async () => {
    const api = new MockApi();
    api.user.credits = 12;
    renderApp('/remove-background', { api, signedIn: true });
    await choose(three());
    expect(
      await screen.findByText(/You have enough credits for the first 2 of 3. We won’t start the others./),
    ).toBeVisible();
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
    await start(5);
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

  describe('whose answers are lost', () => {
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
    const api = Object.assign(new MockApi(), { stepMs: 50 });
    const { router } = renderApp('/remove-background', { api, signedIn: true });
    await choose(three());
    await start(3);
    await router.navigate('/pricing');
    await waitFor(() => expect(screen.queryByRole('heading', { name: '3 images' })).toBeNull());
    expect(api.results).toEqual([]);
    await waitFor(() => expect(api.results).toHaveLength(3));
    await router.navigate('/remove-background');
    expect(await screen.findByText('3 of 3 done')).toBeVisible();
  });
});

describe('a sign-out during a batch', () => {
  test('clears the batch and stops sending', async () => {
    server.use(http.get('http://identity.test/*', () => HttpResponse.error()));
    const { api } = renderApp('/remove-background', { signedIn: true });
    let answer = () => {};
    const heldBack = new Promise<void>((resolve) => {
      answer = resolve;
    });
    let sent = 0;
    server.use(
      http.post('*/api/images/upload', async () => {
        sent += 1;
        await heldBack;
      }),
    );
    await choose([...three(), aFile('four.png')]);
    await start(4);
    await waitFor(() => expect(screen.getAllByText(/^(Uploading|Starting)/)).toHaveLength(2));
    await userEvent.click(screen.getByRole('button', { name: 'ada@example.com' }));
    await userEvent.click(await screen.findByRole('menuitem', { name: 'Logout' }));
    expect(await screen.findByRole('link', { name: 'Login' })).toBeVisible();
    answer();
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(sessionStorage.length).toBe(0);
    expect(useBatches.getState()['remove-background']).toBeUndefined();
    expect(runs(api)).toEqual([]);
    expect(sent).toBe(2);
  });

  test('by the server stops sending after the first refusal', async () => {
    renderApp('/remove-background', { signedIn: true });
    let sent = 0;
    server.use(
      http.post('*/api/images/upload', () => {
        sent += 1;
        return HttpResponse.json({ detail: 'Sign in again.' }, { status: 401 });
      }),
    );
    await choose([...three(), aFile('four.png'), aFile('five.png')]);
    await start(5);
    expect(await screen.findByRole('heading', { name: 'Login' })).toBeVisible();
    await waitFor(() =>
      expect(useBatches.getState()['remove-background']?.items.map(({ state }) => state.kind)).toEqual(
        Array(5).fill('failed'),
      ),
    );
    expect(sent).toBeLessThanOrEqual(2);
  });
});

describe('a batch without a network', () => {
  function goOffline() {
    const onLine = vi.spyOn(navigator, 'onLine', 'get').mockReturnValue(false);
    window.dispatchEvent(new Event('offline'));
    return () => {
      onLine.mockReturnValue(true);
      window.dispatchEvent(new Event('online'));
    };
  }

  test.each([
    ['an upload', '*/api/images/upload'],
    ['a run', '*/api/rmbg-images/remove-bg-ai'],
  ])('%s waits for the network and continues automatically', async (_, path) => {
    const { api } = renderApp('/remove-background', { signedIn: true });
    await choose(three());
    const goOnline = goOffline();
    const cut = http.post(path, () => (navigator.onLine ? undefined : HttpResponse.error()));
    server.use(cut);
    await start(3);
    await waitFor(() =>
      expect(screen.getAllByText('Waiting for the network. This continues automatically.')).toHaveLength(2),
    );
    const leaving = new Event('beforeunload', { cancelable: true });
    window.dispatchEvent(leaving);
    expect(leaving.defaultPrevented).toBe(true);
    goOnline();
    expect(await screen.findByText('3 of 3 done')).toBeVisible();
    expect(runs(api)).toHaveLength(3);
    expect(new Set(api.idempotencyKeys).size).toBe(3);
  });

  test('can be canceled', async () => {
    renderApp('/remove-background', { signedIn: true });
    await choose([aFile('one.png'), aFile('two.png')]);
    const goOnline = goOffline();
    server.use(http.post('*/api/images/upload', () => HttpResponse.error()));
    await start(2);
    await screen.findAllByText('Waiting for the network. This continues automatically.');
    await userEvent.click(screen.getByRole('button', { name: 'Cancel all' }));
    expect(await screen.findByText('0 of 2 done · 2 canceled')).toBeVisible();
    goOnline();
  });
});

describe('a batch after a reload', () => {
  const item = (change: Partial<Batch['items'][number]>): Batch['items'][number] => ({
    id: 'a',
    name: 'one.png',
    bytes: 5,
    file: aFile('one.png'),
    previewUrl: 'blob:one',
    size: { x: 800, y: 600 },
    key: 'key-a',
    image: { id: 'image-1' },
    jobId: null,
    state: { kind: 'waiting' },
    ...change,
  });
  const aBatch = (items: Batch['items'], owner = 'user-1'): Batch => ({
    owner,
    action: removeBackground.paid[0] ?? removeBackground.free,
    hasStarted: true,
    items,
  });

  test('restores the items that the server knows, and follows their runs', async () => {
    const api = Object.assign(new MockApi(), { images: [anImage()] });
    api.jobs = [aJob({ state: 'done', results: [aResult()] })];
    const active = api.runJob({ tool: 'remove-background', imageId: 'image-1' });
    useBatches.setState({
      'remove-background': aBatch([
        item({ jobId: 'job-1' }),
        item({ id: 'b', jobId: active.id }),
        item({ id: 'c', jobId: 'job-0', name: 'deleted.png' }),
        item({ id: 'd', name: 'never-sent.png', image: null }),
      ]),
    });
    useBatches.setState(restoreBatches(), true);
    renderApp('/remove-background', { api, signedIn: true });
    expect(await screen.findByText('2 of 3 done · 1 failed')).toBeVisible();
    expect(rowOf('deleted.png')).toHaveTextContent('Job not found');
    expect(screen.queryByRole('button', { name: /^Retry/ })).toBeNull();
    expect(screen.queryByText('never-sent.png')).toBeNull();
  });

  test('restores an item without a run, and starts it only on request', async () => {
    useBatches.setState({
      'remove-background': aBatch([item({ state: { kind: 'paused', cause: 'server' } })]),
    });
    useBatches.setState(restoreBatches(), true);
    const { api } = renderApp('/remove-background', {
      api: Object.assign(new MockApi(), { images: [anImage()] }),
      signedIn: true,
    });
    expect(await screen.findByText('Not started before the reload')).toBeVisible();
    expect(runs(api)).toEqual([]);
    await userEvent.click(screen.getByRole('button', { name: 'Retry one.png' }));
    expect(await screen.findByText('1 of 1 done')).toBeVisible();
    expect(api.idempotencyKeys).toEqual(['key-a']);
  });

  test('does not claim of a run that was sent that it was not started', async () => {
    const sent = { isSent: true, state: { kind: 'uploading', fraction: 1 } } as const;
    useBatches.setState({ 'remove-background': aBatch([item(sent)]) });
    useBatches.setState(restoreBatches(), true);
    const api = Object.assign(new MockApi(), { images: [anImage()] });
    api.jobOfKey.set('key-a', api.startJob({ state: 'done', results: [aResult()] }));
    renderApp('/remove-background', { api, signedIn: true });
    expect(await screen.findByText('May have started before the reload: retry to see the run')).toBeVisible();
    await userEvent.click(screen.getByRole('button', { name: 'Retry one.png' }));
    expect(await screen.findByText('1 of 1 done')).toBeVisible();
    expect(api.jobs).toHaveLength(1);
  });

  test('names the files that the credits did not cover, also after another reload', async () => {
    useBatches.setState({
      'remove-background': aBatch([
        item({ jobId: 'job-1' }),
        item({ id: 'b', name: 'unpaid.png', image: null, state: { kind: 'unpaid' } }),
      ]),
    });
    useBatches.setState(restoreBatches(), true);
    useBatches.setState(restoreBatches(), true);
    const api = Object.assign(new MockApi(), { images: [anImage()] });
    api.jobs = [aJob({ state: 'done', results: [aResult()] })];
    renderApp('/remove-background', { api, signedIn: true });
    expect(await screen.findByText('1 of 1 done')).toBeVisible();
    expect(screen.getByText('unpaid.png')).toBeVisible();
    expect(screen.getByText('Not started: choose this file again')).toBeVisible();
    const leaving = new Event('beforeunload', { cancelable: true });
    window.dispatchEvent(leaving);
    expect(leaving.defaultPrevented).toBe(false);
  });

  test('says so if no file was sent, instead of counting none', async () => {
    const unsent = { image: null, state: { kind: 'unpaid' } } as const;
    useBatches.setState({
      'remove-background': aBatch([item(unsent), item({ id: 'b', name: 'two.png', ...unsent })]),
    });
    useBatches.setState(restoreBatches(), true);
    renderApp('/remove-background', { signedIn: true });
    expect(await screen.findByText('None of these files was sent')).toBeVisible();
    expect(screen.getByRole('heading', { name: '2 images' })).toBeVisible();
    expect(screen.queryByText(/^0 /)).toBeNull();
    expect(screen.getByRole('button', { name: 'New batch' })).toBeVisible();
  });

  test('names a file whose image was deleted before its run, and keeps the reason of one that is damaged', async () => {
    const failed = { image: null, key: 'key-b' };
    useBatches.setState({
      'remove-background': aBatch([
        item({ jobId: 'job-1' }),
        item({ id: 'b', name: 'gone.png', ...failed, state: { kind: 'failed', reason: 'Image not found' } }),
        item({
          id: 'c',
          name: 'damaged.png',
          ...failed,
          state: { kind: 'failed', reason: 'The file is damaged', isFinal: true },
        }),
      ]),
    });
    useBatches.setState(restoreBatches(), true);
    const api = Object.assign(new MockApi(), { images: [anImage()] });
    api.jobs = [aJob({ state: 'done', results: [aResult()] })];
    renderApp('/remove-background', { api, signedIn: true });
    expect(await screen.findByText('1 of 2 done · 1 failed')).toBeVisible();
    expect(rowOf('gone.png')).toHaveTextContent('Not started: choose this file again');
    expect(rowOf('damaged.png')).toHaveTextContent('The file is damaged');
  });

  test('is hidden from another account', async () => {
    useBatches.setState({
      'remove-background': aBatch([item({ jobId: 'job-1' })], 'user-2'),
    });
    renderApp('/remove-background', { signedIn: true });
    expect(await screen.findByRole('button', { name: 'Choose files' })).toBeVisible();
    expect(screen.queryByText('one.png')).toBeNull();
  });
});

describe('the ZIP file of all results', () => {
  async function zipOfTwo(api = new MockApi()) {
    renderApp('/remove-background', { api, signedIn: true });
    server.use(http.get('*/api/files/:id', () => HttpResponse.arrayBuffer(bytesOf('a picture'))));
    await choose([aFile('one.png'), aFile('two.png')]);
    await start(2);
    await screen.findByText('2 of 2 done');
    return () => userEvent.click(screen.getByRole('button', { name: 'Download all (ZIP)' }));
  }

  test('omits a result that was deleted with its image, and says so', async () => {
    const api = new MockApi();
    const download = await zipOfTwo(api);
    api.jobs = api.jobs.slice(1);
    await download();
    expect(await screen.findByText('The ZIP file lacks 1 result that was deleted')).toBeVisible();
    const [blob] = vi.mocked(saveFile).mock.calls.at(-1) ?? [];
    expect(Object.keys(unzipSync(await readBytes(blob as Blob)))).toHaveLength(1);
  });

  test('does not contain the page of a network that asks to sign in', async () => {
    const download = await zipOfTwo();
    server.use(http.get('*/api/files/:id', aSignInPage, { once: true }));
    await download();
    expect(await screen.findByText('Failed to download image')).toBeVisible();
    expect(saveFile).not.toHaveBeenCalled();
  });

  test('is refused with the reason if it would be too large', async () => {
    const api = new MockApi();
    const download = await zipOfTwo(api);
    for (const job of api.jobs) for (const result of job.results) result.sizeBytes = 3_000_000_000;
    await download();
    expect(
      await screen.findByText('The results are too large for one ZIP file: download them one by one'),
    ).toBeVisible();
    expect(saveFile).not.toHaveBeenCalled();
  });

  test('names each result after its file, without duplicates', async () => {
    renderApp('/upscale', { signedIn: true });
    server.use(
      http.get('*/api/files/:id', ({ params }) =>
        HttpResponse.arrayBuffer(bytesOf(`picture of ${params.id}`)),
      ),
    );
    await choose([aFile('cat.png'), aFile('cat.png'), aFile('dog.jpg', 'image/jpeg')]);
    await start(3);
    await screen.findByText('3 of 3 done');
    await userEvent.click(screen.getByRole('button', { name: 'Download all (ZIP)' }));
    await waitFor(() => expect(saveFile).toHaveBeenCalled());
    const [blob, name] = vi.mocked(saveFile).mock.calls.at(-1) ?? [];
    expect(name).toBe('retouch-upscale.zip');
    const files = unzipSync(await readBytes(blob as Blob));
    expect(Object.keys(files).sort()).toEqual(['cat-2x (2).png', 'cat-2x.png', 'dog-2x.png']);
    const contents = Object.values(files).map((bytes) => new TextDecoder().decode(bytes));
    expect(new Set(contents).size).toBe(3);
    for (const content of contents) expect(content).toMatch(/^picture of upscaled-/);
  });
});

function bytesOf(text: string): ArrayBuffer {
  return new TextEncoder().encode(text).buffer as ArrayBuffer;
}

function readBytes(blob: Blob): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(new Uint8Array(reader.result as ArrayBuffer));
    reader.onerror = () => reject(reader.error);
    reader.readAsArrayBuffer(blob);
  });
}
