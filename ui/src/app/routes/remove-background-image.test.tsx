import { fireEvent, screen, waitFor, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { delay, HttpResponse, http } from 'msw';
import { describe, expect, test } from 'vitest';
import type { Job } from '@/lib/api-types';
import { aJob, anImage, aResult } from '@/testing/builders';
import { MockApi } from '@/testing/mock-api';
import { renderApp } from '@/testing/render-app';
import { server } from '@/testing/server';
import { shortenTimeout } from '@/testing/shorten-timeout';
import { toastsAreShown } from '@/testing/toasts';

function withImage(change: Partial<MockApi> = {}) {
  return Object.assign(new MockApi(), { images: [anImage()], ...change });
}

const results = () => screen.findByRole('list', { name: 'All results' });
const countOf = (api: MockApi, call: string) => api.calls.filter((made) => made === call).length;
async function runButton(name = 'Remove Bg AI') {
  const button = await screen.findByRole('button', { name });
  await waitFor(() => expect(button).toBeEnabled());
  return button;
}

/** Without those that are closing: jsdom ends no animation. */
const openFailureToasts = () =>
  screen
    .queryAllByRole('alert')
    .filter(({ textContent }) => textContent === 'Failed to remove image background');

/** Loses the response of the next run, which becomes the job that `start` returns. */
function loseResponse(api: MockApi, start: () => Job | Promise<Job>) {
  server.use(
    http.post(
      '*/api/rmbg-images/remove-bg-ai',
      async ({ request }) => {
        const key = request.headers.get('Idempotency-Key') ?? '';
        api.idempotencyKeys.push(key);
        api.jobOfKey.set(key, await start());
        return HttpResponse.error();
      },
      { once: true },
    ),
  );
}

describe('the background tool on a stored image', () => {
  test('appends a new result, marks only it as new, and refetches the credits', async () => {
    const api = withImage({ results: [aResult({ imageId: 'old' })] });
    renderApp('/remove-background/image-1', { api, signedIn: true });
    expect(await screen.findByRole('link', { name: 'credits 20' })).toBeVisible();
    expect(await within(await results()).findAllByRole('img')).toHaveLength(1);
    expect(screen.queryByText('NEW')).toBeNull();

    await userEvent.click(await screen.findByRole('button', { name: 'Remove Bg AI' }));

    await waitFor(() => expect(screen.getAllByRole('img', { name: /^Result \d/ })).toHaveLength(2));
    expect(screen.getByRole('img', { name: 'Result 2' }).closest('li')).toHaveTextContent('NEW');
    expect(screen.getByRole('img', { name: 'Result 1' }).closest('li')).not.toHaveTextContent('NEW');
    expect(await screen.findByRole('link', { name: 'credits 15' })).toBeVisible();
  });

  test('resets earlier results to not new when the next one arrives', async () => {
    const api = withImage();
    renderApp('/remove-background/image-1', { api, signedIn: true });
    const run = await runButton();
    await userEvent.click(run);
    await screen.findByRole('img', { name: 'Result 1' });
    await waitFor(() => expect(run).toBeEnabled());
    await userEvent.click(run);
    const second = await screen.findByRole('img', { name: 'Result 2' });
    expect(second.closest('li')).toHaveTextContent('NEW');
    expect(screen.getByRole('img', { name: 'Result 1' }).closest('li')).not.toHaveTextContent('NEW');
  });

  test('a double click starts one run with one key', async () => {
    const api = withImage({ stepMs: 20 });
    renderApp('/remove-background/image-1', { api, signedIn: true });
    const run = await runButton();
    await userEvent.dblClick(run);
    await results();
    expect(countOf(api, 'POST /api/rmbg-images/remove-bg-ai?imageId=image-1')).toBe(1);
    expect(api.idempotencyKeys).toEqual([expect.stringMatching(/^[0-9a-f-]{36}$/)]);
  });

  const unknown = () => HttpResponse.json({ detail: 'Who knows?', code: 'outcome_unknown' }, { status: 500 });
  test.each([
    ['lost response', () => HttpResponse.error()],
    ['response of a proxy', () => new HttpResponse(null, { status: 503 })],
    ['response that the outcome is unknown', unknown],
  ])('retries with the same key after a %s', async (_, answer) => {
    const api = withImage();
    renderApp('/remove-background/image-1', { api, signedIn: true });
    const lost: (string | null)[] = [];
    server.use(
      http.post(
        '*/api/rmbg-images/remove-bg-ai',
        ({ request }) => {
          lost.push(request.headers.get('Idempotency-Key'));
          return answer();
        },
        { once: true },
      ),
    );
    const run = await runButton();
    await userEvent.click(run);
    expect(await screen.findByText('Failed to remove image background')).toBeVisible();
    await userEvent.click(run);
    await results();
    expect(api.idempotencyKeys).toEqual(lost);
  });

  test('forgets a lost response once its run shows up', async () => {
    const api = withImage();
    renderApp('/remove-background/image-1', { api, signedIn: true });
    loseResponse(api, () => api.runJob({ imageId: 'image-1' }));
    await userEvent.click(await runButton());
    expect(await screen.findByText('Failed to remove image background')).toBeVisible();
    expect(await screen.findByRole('img', { name: 'Result 1' })).toBeVisible();
    expect(screen.queryByText('The connection was lost. Please try again.')).toBeNull();
  });

  test('takes back that a run failed once it shows up', async () => {
    const api = withImage({ stepMs: 400 });
    renderApp('/remove-background/image-1', { api, signedIn: true });
    loseResponse(api, () => api.runJob({ imageId: 'image-1' }));
    await userEvent.click(await runButton());
    expect(await screen.findByText('Failed to remove image background')).toBeVisible();
    expect(await screen.findByRole('progressbar', { name: 'Progress' })).toBeVisible();
    await waitFor(() => expect(openFailureToasts()).toHaveLength(0));
    expect(screen.getByRole('progressbar', { name: 'Progress' })).toBeVisible();
  });

  test('reports every failure, even while the toast of the one before closes', async () => {
    const api = withImage();
    renderApp('/remove-background/image-1', { api, signedIn: true });
    server.use(http.post('*/api/rmbg-images/remove-bg-ai', () => HttpResponse.error()));
    const run = await runButton();
    await userEvent.click(run);
    await waitFor(() => expect(openFailureToasts()).toHaveLength(1));
    const [first] = openFailureToasts();
    await userEvent.click(run);
    await waitFor(() => expect(openFailureToasts()).not.toContain(first));
    await waitFor(() => expect(openFailureToasts()).toHaveLength(1));
  });

  test('runs again after a run whose response was lost has failed', async () => {
    const api = withImage();
    renderApp('/remove-background/image-1', { api, signedIn: true });
    const failure = { code: 'internal_error', detail: 'Something went wrong' };
    loseResponse(api, () => {
      const job = api.startJob({ imageId: 'image-1' });
      setTimeout(() => Object.assign(job, { state: 'failed', failure }), 100);
      return job;
    });
    const run = await runButton();
    await userEvent.click(run);
    expect(await screen.findByText('Something went wrong')).toBeVisible();
    await userEvent.click(run);
    expect(await screen.findByRole('img', { name: 'Result 1' })).toBeVisible();
    const [lost, repeated, next] = api.idempotencyKeys;
    expect(repeated).toBe(lost);
    expect(next).not.toBe(lost);
  });

  test('shows the result of a run whose response and end were lost, instead of running again', async () => {
    const api = withImage({ isStreamBroken: true });
    renderApp('/remove-background/image-1', { api, signedIn: true });
    loseResponse(api, () => api.startJob({ imageId: 'image-1', state: 'done', results: [aResult()] }));
    const run = await runButton();
    await userEvent.click(run);
    expect(await screen.findByText('Failed to remove image background')).toBeVisible();
    await userEvent.click(run);
    await results();
    expect(api.jobs).toHaveLength(1);
    const [lost, repeated] = api.idempotencyKeys;
    expect(repeated).toBe(lost);
  });

  test('keeps the key of a lost response while its repeat is refused for now', async () => {
    const api = withImage({ isStreamBroken: true });
    renderApp('/remove-background/image-1', { api, signedIn: true });
    loseResponse(api, () => api.startJob({ imageId: 'image-1', state: 'done', results: [aResult()] }));
    const run = await runButton();
    await userEvent.click(run);
    expect(await screen.findByText('The connection was lost. Please try again.')).toBeVisible();
    server.use(
      http.post(
        '*/api/rmbg-images/remove-bg-ai',
        () => HttpResponse.json({ detail: 'Slow down' }, { status: 429 }),
        { once: true },
      ),
    );
    await userEvent.click(run);
    expect(await screen.findByText('Slow down')).toBeVisible();
    await userEvent.click(run);
    await results();
    expect(api.jobs).toHaveLength(1);
  });

  test('drops a key that the API refuses', async () => {
    const api = withImage();
    renderApp('/remove-background/image-1', { api, signedIn: true });
    const refused: (string | null)[] = [];
    server.use(
      http.post(
        '*/api/rmbg-images/remove-bg-ai',
        ({ request }) => {
          refused.push(request.headers.get('Idempotency-Key'));
          const problem = { code: 'idempotency_key_reused', detail: 'Another request had this key' };
          return HttpResponse.json(problem, { status: 422 });
        },
        { once: true },
      ),
    );
    const run = await runButton();
    await userEvent.click(run);
    expect(await screen.findByText('Another request had this key')).toBeVisible();
    await userEvent.click(run);
    await results();
    expect(api.idempotencyKeys).not.toEqual(refused);
  });

  test('starts another run after the list has shown the result of a lost one', async () => {
    const old = aResult({ imageId: 'old', jobId: 'old' });
    const api = withImage({ isStreamBroken: true, results: [old] });
    const { queryClient } = renderApp('/remove-background/image-1', { api, signedIn: true });
    await screen.findByRole('img', { name: 'Result 1' });
    const made = aResult({ jobId: 'lost', createdAt: '2026-11-20T10:02:00Z' });
    loseResponse(api, () => api.startJob({ id: 'lost', imageId: 'image-1', state: 'done', results: [made] }));
    const run = await runButton();
    await userEvent.click(run);
    expect(await screen.findByText('The connection was lost. Please try again.')).toBeVisible();

    api.results = [old, made];
    void queryClient.invalidateQueries({ queryKey: ['rmbg-images'] });
    expect(await screen.findByRole('button', { name: 'Result 2', pressed: true })).toBeVisible();
    expect(screen.getByText('The result is ready')).toHaveAttribute('aria-live', 'polite');
    await waitFor(() => expect(screen.queryByText('The connection was lost. Please try again.')).toBeNull());

    await userEvent.click(run);
    await waitFor(() => expect(api.jobs).toHaveLength(2));
    const [lost, repeated, next] = api.idempotencyKeys;
    expect(repeated).toBe(lost);
    expect(next).not.toBe(lost);
  });

  test('does not complain of a lost response after the result has arrived', async () => {
    const api = withImage();
    renderApp('/remove-background/image-1', { api, signedIn: true });
    loseResponse(api, async () => {
      const job = api.runJob({ imageId: 'image-1' });
      await results();
      return job;
    });
    const run = await runButton();
    await userEvent.click(run);
    await results();
    await waitFor(() => expect(run).toBeEnabled());
    expect(screen.queryByText('Failed to remove image background')).toBeNull();
    expect(screen.queryByText('The connection was lost. Please try again.')).toBeNull();
  });

  test('does not say that a run failed whose progress it shows', async () => {
    const api = withImage();
    const { queryClient } = renderApp('/remove-background/image-1', { api, signedIn: true });
    loseResponse(api, async () => {
      const job = api.startJob({ imageId: 'image-1' });
      await screen.findByRole('progressbar');
      return job;
    });
    await userEvent.click(await runButton());
    await waitFor(() => expect(api.jobOfKey.size).toBe(1));
    await waitFor(() => expect(queryClient.isMutating()).toBe(0));
    await toastsAreShown();
    expect(screen.getByRole('progressbar', { name: 'Progress' })).toBeVisible();
    expect(screen.queryByText('Failed to remove image background')).toBeNull();
  });

  test('keeps the reason of a failed run whose response is lost later', async () => {
    const api = withImage();
    renderApp('/remove-background/image-1', { api, signedIn: true });
    const failure = { code: 'internal_error', detail: 'Something went wrong' };
    loseResponse(api, async () => {
      const job = api.startJob({ imageId: 'image-1' });
      await screen.findByRole('progressbar');
      Object.assign(job, { state: 'failed', failure });
      await screen.findByText('Something went wrong');
      return job;
    });
    const run = await runButton();
    await userEvent.click(run);
    await waitFor(() => expect(api.jobOfKey.size).toBe(1));
    await waitFor(() => expect(run).toBeEnabled());
    expect(screen.getByText('Something went wrong')).toBeVisible();
    expect(screen.queryByText('The connection was lost. Please try again.')).toBeNull();
  });

  test('does not complain of a lost response after the run was canceled', async () => {
    const api = withImage();
    const { queryClient } = renderApp('/remove-background/image-1', { api, signedIn: true });
    loseResponse(api, async () => {
      const job = api.startJob({ imageId: 'image-1' });
      await userEvent.click(await screen.findByRole('button', { name: 'Cancel' }));
      await screen.findByText('The run was canceled');
      return job;
    });
    const run = await runButton();
    await userEvent.click(run);
    await waitFor(() => expect(api.jobOfKey.size).toBe(1));
    await waitFor(() => expect(queryClient.isMutating()).toBe(0));
    await toastsAreShown();
    expect(run).toBeEnabled();
    expect(screen.queryByText('Failed to remove image background')).toBeNull();
    expect(screen.queryByText('The connection was lost. Please try again.')).toBeNull();
  });

  test('does not complain of a lost response after the list has shown the result', async () => {
    const api = withImage({ isStreamBroken: true });
    const { queryClient } = renderApp('/remove-background/image-1', { api, signedIn: true });
    loseResponse(api, async () => {
      api.results = [aResult({ jobId: 'lost' })];
      void queryClient.invalidateQueries({ queryKey: ['rmbg-images'] });
      await results();
      return api.startJob({ id: 'lost', imageId: 'image-1', state: 'done', results: api.results });
    });
    await userEvent.click(await runButton());
    await waitFor(() => expect(api.jobOfKey.size).toBe(1));
    await waitFor(() => expect(queryClient.isMutating()).toBe(0));
    await toastsAreShown();
    expect(screen.queryByText('Failed to remove image background')).toBeNull();
    expect(screen.queryByText('The connection was lost. Please try again.')).toBeNull();
  });

  test('ends the wait on a connection that is dead', async () => {
    shortenTimeout(120_000);
    const api = withImage();
    renderApp('/remove-background/image-1', { api, signedIn: true });
    server.use(
      http.post('*/api/rmbg-images/remove-bg-ai', () => new Promise<never>(() => {}), { once: true }),
    );
    const run = await runButton();
    await userEvent.click(run);
    expect(await screen.findByText('The connection was lost. Please try again.')).toBeVisible();
    await userEvent.click(run);
    await results();
  });

  test('can run again as soon as a run has ended whose response is still due', async () => {
    const api = withImage();
    renderApp('/remove-background/image-1', { api, signedIn: true });
    server.use(
      http.post('*/api/rmbg-images/remove-bg-ai', () => {
        api.runJob({ imageId: 'image-1' });
        return new Promise<never>(() => {});
      }),
    );
    const run = await runButton();
    await userEvent.click(run);
    await results();
    await waitFor(() => expect(run).not.toHaveAttribute('aria-disabled'));
    expect(run).toBeEnabled();
  });

  test('keeps the reason of a failed run when another result arrives with the list', async () => {
    const api = withImage();
    const { queryClient } = renderApp('/remove-background/image-1', { api, signedIn: true });
    const failure = { code: 'internal_error', detail: 'Something went wrong' };
    loseResponse(api, () => {
      const job = api.startJob({ imageId: 'image-1' });
      setTimeout(() => Object.assign(job, { state: 'failed', failure }), 100);
      return job;
    });
    await userEvent.click(await runButton());
    expect(await screen.findByText('Something went wrong')).toBeVisible();
    api.results = [aResult({ jobId: 'other' })];
    void queryClient.invalidateQueries({ queryKey: ['rmbg-images'] });
    await results();
    expect(screen.getByText('Something went wrong')).toBeVisible();
  });

  test('shows why the API refused a run although another one is active', async () => {
    const api = withImage();
    renderApp('/remove-background/image-1', { api, signedIn: true });
    server.use(
      http.post('*/api/rmbg-images/remove-bg-ai', async () => {
        api.startJob({ imageId: 'image-1' });
        await screen.findByRole('progressbar');
        return HttpResponse.json({ detail: 'Too many runs are waiting' }, { status: 503 });
      }),
    );
    await userEvent.click(await runButton());
    expect(await screen.findByText('Too many runs are waiting')).toBeVisible();
    expect(screen.getByRole('progressbar', { name: 'Progress' })).toBeVisible();
  });

  test('complains of a lost response although a different run of the tool has succeeded meanwhile', async () => {
    const api = withImage();
    renderApp('/remove-background/image-1', { api, signedIn: true });
    loseResponse(api, async () => {
      const free = api.runJob({ imageId: 'image-1', tier: 'free' });
      await results();
      return free;
    });
    await userEvent.click(await runButton());
    expect(await screen.findByText('The connection was lost. Please try again.')).toBeVisible();
  });

  test('shows why the API refused a run although another one has succeeded meanwhile', async () => {
    const api = withImage();
    renderApp('/remove-background/image-1', { api, signedIn: true });
    server.use(
      http.post('*/api/rmbg-images/remove-bg-ai', async () => {
        api.runJob({ imageId: 'image-1' });
        await results();
        return HttpResponse.json({ detail: 'Too many runs are waiting' }, { status: 503 });
      }),
    );
    await userEvent.click(await runButton());
    expect(await screen.findByText('Too many runs are waiting')).toBeVisible();
  });

  test('says Failed to find your image once a run shows that it was deleted', async () => {
    const api = withImage();
    renderApp('/remove-background/image-1', { api, signedIn: true });
    const run = await runButton();
    api.images = [];
    server.use(
      http.post('*/api/rmbg-images/remove-bg-ai', () =>
        HttpResponse.json({ code: 'not_found', detail: 'Image not found' }, { status: 404 }),
      ),
    );
    await userEvent.click(run);
    expect(await screen.findByRole('heading', { name: 'Failed to find your image' })).toBeVisible();
  });

  test('says Not enough credits with a link to the packs', async () => {
    const api = withImage();
    api.user.credits = 3;
    renderApp('/remove-background/image-1', { api, signedIn: true });
    await userEvent.click(await runButton());
    const notice = await screen.findByRole('alert');
    expect(notice).toHaveTextContent('Not enough credits');
    expect(within(notice).getByRole('link')).toHaveAttribute('href', '/pricing');
  });

  test('refuses a second free run of the same image', async () => {
    const api = withImage();
    renderApp('/remove-background/image-1', { api, signedIn: true });
    server.use(
      http.post('*/api/rmbg-images/remove-bg-free', () =>
        HttpResponse.json({ detail: 'Free Exists', status: 409 }, { status: 409 }),
      ),
    );
    const run = await runButton('Remove Bg');
    await userEvent.click(run);
    expect(await screen.findByText('Free background remove image already created')).toBeVisible();
    expect(run).toHaveAttribute('aria-disabled', 'true');
  });

  test('shows a failed run with its reason', async () => {
    const api = withImage();
    const failed = aJob({
      state: 'failed',
      failure: { code: 'decode', detail: 'The file is damaged and cannot be read.' },
    });
    renderApp('/remove-background/image-1', { api, signedIn: true });
    server.use(http.post('*/api/rmbg-images/remove-bg-ai', () => HttpResponse.json(failed, { status: 202 })));
    await userEvent.click(await runButton());
    expect(await screen.findByText('Failed to remove image background')).toBeVisible();
    expect(screen.getByText('The file is damaged and cannot be read.')).toBeVisible();
  });

  test('follows a job that was running before the page loaded', async () => {
    const api = withImage();
    api.runJob({ imageId: 'image-1' });
    renderApp('/remove-background/image-1', { api, signedIn: true });
    expect(await screen.findByRole('img', { name: 'Result 1' })).toBeVisible();
  });

  test('keeps a result that arrives before the list has loaded', async () => {
    const api = withImage({ results: [aResult({ imageId: 'old' })] });
    const { queryClient } = renderApp('/remove-background/image-1', { api, signedIn: true });
    let answerLate = () => {};
    const late = new Promise<void>((resolve) => {
      answerLate = resolve;
    });
    server.use(
      http.get(
        '*/api/rmbg-images/:id',
        async () => {
          const before = [...api.results];
          await late;
          return HttpResponse.json(before);
        },
        { once: true },
      ),
    );
    await userEvent.click(await runButton());
    await waitFor(() => expect(api.results).toHaveLength(2));
    answerLate();
    expect(await screen.findByRole('img', { name: 'Result 2' })).toBeVisible();
    await waitFor(() => expect(queryClient.isFetching()).toBe(0));
    expect(screen.getAllByRole('img', { name: /^Result \d/ })).toHaveLength(2);
  });

  test('cancels a queued run', async () => {
    const api = withImage({ stepMs: 60 });
    renderApp('/remove-background/image-1', { api, signedIn: true });
    const run = await runButton();
    await userEvent.click(run);
    await userEvent.click(await screen.findByRole('button', { name: 'Cancel' }));
    await waitFor(() => expect(screen.queryByRole('progressbar')).toBeNull());
    expect(run).toBeEnabled();
    expect(screen.getByText('No images to show')).toBeVisible();
  });

  test('says that a run could not be canceled', async () => {
    const api = withImage({ stepMs: 500 });
    renderApp('/remove-background/image-1', { api, signedIn: true });
    server.use(http.delete('*/api/jobs/:id', () => new HttpResponse(null, { status: 500 })));
    await userEvent.click(await runButton());
    await userEvent.click(await screen.findByRole('button', { name: 'Cancel' }));
    expect(await screen.findByText('Failed to cancel the run, try again later')).toBeVisible();
  });

  test('can be canceled again after the connection was dead', async () => {
    shortenTimeout(30_000);
    renderApp('/remove-background/image-1', { api: withImage({ stepMs: 500 }), signedIn: true });
    server.use(http.delete('*/api/jobs/:id', () => delay('infinite'), { once: true }));
    await userEvent.click(await runButton());
    const cancel = await screen.findByRole('button', { name: 'Cancel' });
    await userEvent.click(cancel);
    expect(await screen.findByText('Failed to cancel the run, try again later')).toBeVisible();
    await waitFor(() => expect(cancel).toBeEnabled());
    await userEvent.click(cancel);
    expect(await screen.findByText('The run was canceled')).toBeInTheDocument();
  });

  test('removes a result that was deleted in another tab', async () => {
    const api = withImage({ results: [aResult({ imageId: 'a' })] });
    renderApp('/remove-background/image-1', { api, signedIn: true });
    server.use(http.delete('*/api/rmbg-images/:id', () => new HttpResponse(null, { status: 404 })));
    await userEvent.click(await screen.findByRole('button', { name: 'DELETE' }));
    await userEvent.click(
      within(await screen.findByRole('alertdialog')).getByRole('button', { name: 'Delete' }),
    );
    expect(await screen.findByText('No images to show')).toBeVisible();
  });

  test('deletes a result after a confirmation and selects the first remaining one', async () => {
    const api = withImage({ results: [aResult({ imageId: 'a' }), aResult({ imageId: 'b' })] });
    renderApp('/remove-background/image-1', { api, signedIn: true });
    await userEvent.click(await screen.findByRole('button', { name: 'Result 2' }));
    await userEvent.click(screen.getByRole('button', { name: 'DELETE' }));
    await userEvent.click(
      within(await screen.findByRole('alertdialog')).getByRole('button', { name: 'Delete' }),
    );
    await waitFor(() => expect(screen.queryByRole('button', { name: 'Result 2' })).toBeNull());
    expect(screen.getByRole('button', { name: 'Result 1' })).toHaveAttribute('aria-pressed', 'true');
    expect(api.results.map(({ imageId }) => imageId)).toEqual(['a']);
  });

  test('says Failed to find your image and links back to the image picker', async () => {
    renderApp('/remove-background/nothing', { signedIn: true });
    expect(await screen.findByRole('heading', { name: 'Failed to find your image' })).toBeVisible();
    expect(screen.getByRole('link', { name: 'Choose another image' })).toHaveAttribute(
      'href',
      '/remove-background',
    );
    expect(await screen.findByText('Failed to load your original image')).toBeVisible();
  });

  test('says Failed to load images with removed background', async () => {
    const api = withImage();
    renderApp('/remove-background/image-1', { api, signedIn: true });
    server.use(http.get('*/api/rmbg-images/:id', () => new HttpResponse(null, { status: 500 })));
    expect((await screen.findAllByText('Failed to load images with removed background'))[0]).toBeVisible();
  });
});

describe('an original that cannot be loaded', () => {
  const path = '/remove-background/image-1';
  const failed = 'This picture could not be loaded.';
  const missing = 'This image is no longer stored. Please upload it again.';

  async function failWith(answer: () => Response) {
    const api = Object.assign(new MockApi(), { images: [anImage({ name: 'photo.png' })] });
    renderApp(path, { api, signedIn: true });
    server.use(http.get('*/api/files/image-1', answer));
    const run = await runButton();
    const picture = screen.getByRole('img', { name: 'photo.png' });
    fireEvent.error(picture);
    expect(await screen.findByText(failed)).toBeVisible();
    return { run, picture };
  }

  test('starts no runs if the server no longer has it', async () => {
    const { run, picture } = await failWith(() => new HttpResponse(null, { status: 404 }));
    expect(await screen.findByText(missing)).toBeVisible();
    expect(run).toBeDisabled();
    expect(screen.getByRole('button', { name: 'Remove Bg' })).toBeDisabled();

    // It was only restored late.
    fireEvent.load(picture);
    await waitFor(() => expect(run).toBeEnabled());
    expect(screen.queryByText(failed)).toBeNull();
    expect(screen.queryByText(missing)).toBeNull();
  });

  test('can be used after a lost connection', async () => {
    let asked = 0;
    const { run } = await failWith(() => {
      asked += 1;
      return HttpResponse.error();
    });
    await waitFor(() => expect(asked).toBe(1));
    await delay(50);
    expect(run).toBeEnabled();
    expect(screen.queryByText(missing)).toBeNull();
  });
});
