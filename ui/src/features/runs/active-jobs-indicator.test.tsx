import { act, screen, waitFor, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { delay, HttpResponse, http } from 'msw';
import { afterEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import type { Job } from '@/lib/api-types';
import { anImage, aResult, aUser } from '@/testing/builders';
import { MockApi } from '@/testing/mock-api';
import { renderApp } from '@/testing/render-app';
import { server } from '@/testing/server';
import { toastsAreShown } from '@/testing/toasts';
import { followerOf } from './run-follower';
import { BATCH_KEY } from './run-toast';

const POLL_MS = 3_000;

const polls = (api: MockApi) => api.calls.filter((call) => call === 'GET /api/jobs').length;
const indicator = (count: number) => screen.findByRole('button', { name: `${count} running` });
const noIndicator = () => expect(screen.queryByRole('button', { name: /running$/ })).toBeNull();

/** `waitFor` needs timers that advance with the clock. */
const fakeIntervals = () =>
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'], shouldAdvanceTime: true });

function withRuns(...images: string[]) {
  const api = new MockApi();
  for (const imageId of images) api.startJob({ imageId, tool: 'upscale', factor: 4, position: 2 });
  return api;
}

describe('the indicator of active jobs', () => {
  afterEach(() => vi.useRealTimers());

  test('is hidden without jobs, and asks no more than once', async () => {
    fakeIntervals();
    const { api } = renderApp('/pricing', { signedIn: true });
    await waitFor(() => expect(api.streams).toBe(1));
    await act(() => vi.advanceTimersByTimeAsync(10 * POLL_MS));
    expect(polls(api)).toBeLessThanOrEqual(1);
    noIndicator();
  });

  test('shows progress from the event stream and links to the page of the job', async () => {
    const { api, router } = renderApp('/pricing', { api: withRuns('image-1'), signedIn: true });
    const button = await indicator(1);
    await waitFor(() => expect(api.streams).toBe(1));
    Object.assign(api.jobs[0] as object, { position: 1, etaSeconds: 3 });
    api.images = [anImage()];
    await userEvent.click(button);
    const item = await screen.findByRole('menuitem', { name: /^Upscale 4X/ });
    await waitFor(() => expect(item).toHaveTextContent('1 ahead · about 3 s left'));
    expect(polls(api)).toBeLessThanOrEqual(1);
    await userEvent.click(item);
    await waitFor(() => expect(router.state.location.pathname).toBe('/upscale/image-1'));
    expect(screen.queryByRole('menu')).toBeNull();
  });

  test('polls while the event stream is silent', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'Date'], shouldAdvanceTime: true });
    const api = Object.assign(withRuns('image-1'), { isStreamBroken: true });
    renderApp('/pricing', { api, signedIn: true });
    await indicator(1);
    const before = polls(api);
    server.use(http.get('*/api/events', () => new HttpResponse(null, { status: 502 })));
    await act(() => vi.advanceTimersByTimeAsync(10 * POLL_MS));
    await waitFor(() => expect(polls(api)).toBeGreaterThan(before));
  });

  test('a run of another tab appears, and its result and the credits with it', async () => {
    const api = Object.assign(new MockApi(), { images: [anImage()], stepMs: 20 });
    renderApp('/upscale/image-1', { api, signedIn: true });
    await waitFor(() => expect(api.streams).toBe(1));
    expect(await screen.findByRole('link', { name: 'credits 20' })).toBeVisible();
    api.runJob({ tool: 'upscale', factor: 4, cost: 6, imageId: 'image-1' });
    await screen.findByRole('progressbar');
    expect(await screen.findByRole('img', { name: 'Result 1' })).toBeVisible();
    expect(await screen.findByRole('link', { name: 'credits 14' })).toBeVisible();
  });

  test('a run that cannot be read stays in sight until it can', async () => {
    const { api, queryClient } = renderApp('/pricing', { api: withRuns('image-1'), signedIn: true });
    await indicator(1);
    await waitFor(() => expect(api.streams).toBe(1));
    const [job] = api.jobs;
    server.use(http.get('*/api/jobs/:id', () => new HttpResponse(null, { status: 503 })));
    // A list without the job, such as one from before it was submitted.
    act(() => void queryClient.setQueryData(['active-jobs'], []));
    await waitFor(noIndicator);
    server.use(http.get('*/api/jobs/:id', () => HttpResponse.json(job)));
    expect(await indicator(1)).toBeVisible();
  });

  test.each([
    ['that cannot be read', async () => new HttpResponse(null, { status: 503 }), 7],
    ['whose answer is late', () => new Promise<Response>(() => {}), 1],
  ])('a run %s is not asked for all the time', async (_, answer, most) => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'Date'], shouldAdvanceTime: true });
    const { api, queryClient } = renderApp('/pricing', { api: withRuns('image-1'), signedIn: true });
    await indicator(1);
    await waitFor(() => expect(api.streams).toBe(1));
    const read = vi.fn(answer);
    server.use(http.get('*/api/jobs/:id', read));
    act(() => void queryClient.setQueryData(['active-jobs'], []));
    for (let checks = 0; checks < 20; checks += 1) {
      await act(() => vi.advanceTimersByTimeAsync(POLL_MS));
      await delay(20);
    }
    expect(read.mock.calls.length).toBeGreaterThan(most / 3);
    expect(read.mock.calls.length).toBeLessThanOrEqual(most);
  });

  test('a run that has ended does not come back with a late list', async () => {
    const { api, queryClient } = renderApp('/pricing', { api: withRuns('image-1'), signedIn: true });
    await indicator(1);
    await waitFor(() => expect(api.streams).toBe(1));
    const list = { jobs: structuredClone(api.jobs) };
    let arrive = () => {};
    const arrival = new Promise<void>((resolve) => {
      arrive = resolve;
    });
    server.use(
      http.get('*/api/jobs', async () => {
        await arrival;
        return HttpResponse.json(list);
      }),
    );
    const late = queryClient.invalidateQueries({ queryKey: ['active-jobs'] });
    for (const job of api.jobs) job.state = 'done';
    await waitFor(noIndicator);
    arrive();
    await act(() => late);
    noIndicator();
  });

  test('links each job to the page of its image', async () => {
    renderApp('/terms', { api: withRuns('image-1', 'image-2', 'image-3'), signedIn: true });
    await userEvent.click(await indicator(3));
    const menu = within(await screen.findByRole('menu', { name: '3 running' }));
    expect(menu.getAllByRole('menuitem').map((item) => item.getAttribute('href'))).toEqual([
      '/upscale/image-1',
      '/upscale/image-2',
      '/upscale/image-3',
    ]);
  });

  test('shows only an icon and a number on a phone, with the same name', async () => {
    renderApp('/pricing', { api: withRuns('image-1', 'image-2'), signedIn: true });
    const button = await indicator(2);
    expect(within(button).getByText('running')).toHaveClass('hidden', 'sm:max-xl:inline');
    expect(within(button).getByText('2')).toBeVisible();
    expect(button).toHaveClass('max-sm:min-h-11');
  });

  test('says that nothing is running when the last job ends while the menu is open', async () => {
    const { api } = renderApp('/pricing', { api: withRuns('image-1'), signedIn: true });
    await userEvent.click(await indicator(1));
    await screen.findByRole('menuitem');
    for (const job of api.jobs) job.state = 'done';
    expect(await screen.findByText('Nothing is running')).toBeVisible();
    await userEvent.keyboard('{Escape}');
    await waitFor(noIndicator);
  });

  test('shows a run of the current page at once, and hides at its end', async () => {
    const api = Object.assign(new MockApi(), { images: [anImage()], stepMs: 40 });
    renderApp('/upscale/image-1', { api, signedIn: true });
    const run = await screen.findByRole('button', { name: 'Upscale 2X' });
    await waitFor(() => expect(run).toBeEnabled());
    await userEvent.click(run);
    expect(await indicator(1)).toBeVisible();
    await screen.findByRole('img', { name: 'Result 1' });
    await waitFor(noIndicator);
    // The page follows the account's events; no poll was needed.
    expect(polls(api)).toBeLessThanOrEqual(1);
  });

  test('shows a toast for a run that ends on another page, and refreshes its results and the credits', async () => {
    const api = withRuns('image-1');
    const { router, queryClient } = renderApp('/pricing', { api, signedIn: true });
    await indicator(1);
    queryClient.setQueryData(['upscaled-images', 'image-1'], []);
    api.images = [anImage()];
    api.upscaled = [aResult({ imageId: 'a', factor: 2 }), aResult({ imageId: 'b', factor: 4 })];
    api.user = aUser({ credits: 14 });
    for (const job of api.jobs) Object.assign(job, { state: 'done', results: [api.upscaled[1]] });

    const toast = await screen.findByRole('alert');
    expect(toast).toHaveTextContent('Upscale 4X is ready');
    expect(await screen.findByRole('link', { name: 'credits 14' })).toBeVisible();
    expect(queryClient.getQueryState(['upscaled-images', 'image-1'])?.isInvalidated).toBe(true);
    noIndicator();
    await userEvent.click(within(toast).getByRole('link', { name: 'Show it' }));
    await waitFor(() => expect(router.state.location.pathname).toBe('/upscale/image-1'));
    expect(await screen.findByRole('button', { name: 'Result 2' })).toHaveAttribute('aria-pressed', 'true');
  });

  test('shows no toast for a run that a list on the page shows', async () => {
    const api = withRuns('image-1', 'image-2');
    const { queryClient } = renderApp('/pricing', { api, signedIn: true });
    await indicator(2);
    let shown: string | null = 'image-1';
    const isShown = ({ imageId }: Job) => imageId === shown;
    followerOf(queryClient).watchers.add({ onJob: () => {}, onDeleted: () => {}, isShown });
    api.images = [anImage()];
    Object.assign(api.jobs[0] as object, { state: 'done', results: [aResult()] });
    await indicator(1);
    expect(screen.queryByRole('alert')).toBeNull();
    shown = null;
    Object.assign(api.jobs[1] as object, { state: 'done', results: [aResult()] });
    expect(await screen.findByRole('alert')).toHaveTextContent('Upscale 4X is ready');
  });

  test('shows no toast for a run of a batch, which another tab reports', async () => {
    const api = withRuns('image-1', 'image-2');
    renderApp('/pricing', { api, signedIn: true });
    await indicator(2);
    Object.assign(api.jobs[0] as object, { state: 'done', idempotencyKey: `${BATCH_KEY}1` });
    await indicator(1);
    Object.assign(api.jobs[1] as object, { state: 'done', factor: 2 });
    expect(await screen.findByRole('alert')).toHaveTextContent('Upscale 2X is ready');
    expect(screen.queryByText(/4X is ready/)).toBeNull();
  });

  test('shows no toast in a tab that another one leads', async () => {
    // The lock of the leader never becomes free.
    const locks = { request: () => new Promise(() => {}) };
    Object.defineProperty(navigator, 'locks', { value: locks, configurable: true });
    onTestFinished(() => void Reflect.deleteProperty(navigator, 'locks'));
    const { api } = renderApp('/pricing', { api: withRuns('image-1'), signedIn: true });
    await indicator(1);
    const leader = new BroadcastChannel('retouch-runs:user-1');
    leader.postMessage({ name: 'job', data: JSON.stringify({ ...api.jobs[0], state: 'done' }) });
    await waitFor(noIndicator);
    leader.close();
    await toastsAreShown();
    expect(screen.queryByText(/4X is ready/)).toBeNull();
  });

  test.each([
    ['failed', 'Upscale 4X failed and cost nothing'],
    ['cancelled', 'Upscale 4X was canceled and cost nothing'],
  ] as const)('shows a toast for a run that ends on another page as %s', async (state, text) => {
    const { api } = renderApp('/pricing', { api: withRuns('image-1'), signedIn: true });
    await indicator(1);
    for (const job of api.jobs) job.state = state;
    expect(await screen.findByRole('alert')).toHaveTextContent(text);
    expect(screen.queryByText(/4X is ready/)).toBeNull();
  });

  test('shows no toast for a run that was deleted with its image', async () => {
    const { api, queryClient } = renderApp('/pricing', { api: withRuns('image-1'), signedIn: true });
    await indicator(1);
    api.jobs = [];
    await act(() => queryClient.invalidateQueries({ queryKey: ['active-jobs'] }));
    await waitFor(noIndicator);
    await waitFor(() => expect(api.calls).toContain('GET /api/jobs/job-2'));
    expect(screen.queryByRole('alert')).toBeNull();
  });

  test('shows no toast for a run of the current page', async () => {
    const api = Object.assign(new MockApi(), { images: [anImage()], stepMs: 40 });
    renderApp('/upscale/image-1', { api, signedIn: true });
    const run = await screen.findByRole('button', { name: 'Upscale 2X' });
    await waitFor(() => expect(run).toBeEnabled());
    await userEvent.click(run);
    const added = await screen.findByRole('img', { name: 'Result 1' });
    expect(added.closest('li')).toHaveTextContent('NEW');
    expect(screen.queryByRole('alert')).toBeNull();
  });

  test('is hidden for visitors, without polling', async () => {
    const { api } = renderApp('/pricing', { api: withRuns('image-1') });
    await screen.findByRole('heading', { level: 1 });
    noIndicator();
    expect(polls(api)).toBe(0);
  });
});
