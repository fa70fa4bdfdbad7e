import { act, screen, waitFor, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { anImage, aResult, aUser } from '@/testing/builders';
import { MockApi } from '@/testing/mock-api';
import { renderApp } from '@/testing/render-app';

const LOOK_MS = 3_000;

const looks = (api: MockApi) => api.calls.filter((call) => call === 'GET /api/jobs').length;
const indicator = (count: number) => screen.findByRole('button', { name: `${count} running` });
const noIndicator = () => expect(screen.queryByRole('button', { name: /running$/ })).toBeNull();

/** They go on with the clock, so that what a test waits for is still looked for. */
const fakeIntervals = () =>
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'], shouldAdvanceTime: true });

function withRuns(...images: string[]) {
  const api = new MockApi();
  for (const imageId of images) api.startJob({ imageId, tool: 'upscale', factor: 4, position: 2 });
  return api;
}

describe('what runs is shown in the top bar', () => {
  afterEach(() => vi.useRealTimers());

  test('none: nothing is there, and nobody asks again', async () => {
    fakeIntervals();
    const { api } = renderApp('/pricing', { signedIn: true });
    await waitFor(() => expect(looks(api)).toBe(1));
    await act(() => vi.advanceTimersByTimeAsync(10 * LOOK_MS));
    expect(looks(api)).toBe(1);
    noIndicator();
  });

  test('one: it is asked after, and leads to where it is shown', async () => {
    fakeIntervals();
    const { api, router } = renderApp('/pricing', { api: withRuns('image-1'), signedIn: true });
    const button = await indicator(1);
    expect(looks(api)).toBe(1);
    await act(() => vi.advanceTimersByTimeAsync(LOOK_MS));
    await waitFor(() => expect(looks(api)).toBe(2));
    vi.useRealTimers();
    api.images = [anImage()];
    await userEvent.click(button);
    const item = await screen.findByRole('menuitem', { name: /^Upscale 4X/ });
    expect(item).toHaveTextContent('2 ahead · about 4 s left');
    await userEvent.click(item);
    await waitFor(() => expect(router.state.location.pathname).toBe('/upscale/image-1'));
    expect(screen.queryByRole('menu')).toBeNull();
  });

  test('many: each on the page of its image', async () => {
    renderApp('/terms', { api: withRuns('image-1', 'image-2', 'image-3'), signedIn: true });
    await userEvent.click(await indicator(3));
    const menu = within(await screen.findByRole('menu', { name: '3 running' }));
    expect(menu.getAllByRole('menuitem').map((item) => item.getAttribute('href'))).toEqual([
      '/upscale/image-1',
      '/upscale/image-2',
      '/upscale/image-3',
    ]);
  });

  test('on a phone as a sign and a number, under the same name', async () => {
    renderApp('/pricing', { api: withRuns('image-1', 'image-2'), signedIn: true });
    const button = await indicator(2);
    expect(within(button).getByText('running')).toHaveClass('hidden', 'sm:max-xl:inline');
    expect(within(button).getByText('2')).toBeVisible();
    expect(button).toHaveClass('max-sm:min-h-11');
  });

  test('what ends while the list is open is told, and gone with the list', async () => {
    const { api } = renderApp('/pricing', { api: withRuns('image-1'), signedIn: true });
    await userEvent.click(await indicator(1));
    await screen.findByRole('menuitem');
    for (const job of api.jobs) job.state = 'done';
    expect(await screen.findByText('Nothing is running any more')).toBeVisible();
    await userEvent.keyboard('{Escape}');
    await waitFor(noIndicator);
  });

  test('a run of this page at once, and not a moment after its end', async () => {
    const api = Object.assign(new MockApi(), { images: [anImage()], stepMs: 40 });
    renderApp('/upscale/image-1', { api, signedIn: true });
    const run = await screen.findByRole('button', { name: 'Upscale 2X' });
    await waitFor(() => expect(run).toBeEnabled());
    await waitFor(() => expect(looks(api)).toBe(1));
    await userEvent.click(run);
    expect(await indicator(1)).toBeVisible();
    await screen.findByRole('img', { name: 'Result 1' });
    noIndicator();
    // It was followed by its events; nobody had to ask for it.
    expect(looks(api)).toBe(1);
  });

  test('a run that ends elsewhere is told, with its result, and paid for in the top bar', async () => {
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

  test.each([
    ['failed', 'Upscale 4X failed and cost nothing'],
    ['cancelled', 'Upscale 4X was cancelled and cost nothing'],
  ] as const)('a run that %s elsewhere is told as such', async (state, text) => {
    const { api } = renderApp('/pricing', { api: withRuns('image-1'), signedIn: true });
    await indicator(1);
    for (const job of api.jobs) job.state = state;
    expect(await screen.findByRole('alert')).toHaveTextContent(text);
    expect(screen.queryByText(/is ready/)).toBeNull();
  });

  test('a run that went with its image is told by nobody', async () => {
    const { api } = renderApp('/pricing', { api: withRuns('image-1'), signedIn: true });
    await indicator(1);
    api.jobs = [];
    await waitFor(noIndicator);
    await waitFor(() => expect(api.calls).toContain('GET /api/jobs/job-2'));
    expect(screen.queryByRole('alert')).toBeNull();
  });

  test('a run of this page is told by the page alone', async () => {
    const api = Object.assign(new MockApi(), { images: [anImage()], stepMs: 40 });
    renderApp('/upscale/image-1', { api, signedIn: true });
    const run = await screen.findByRole('button', { name: 'Upscale 2X' });
    await waitFor(() => expect(run).toBeEnabled());
    await userEvent.click(run);
    const added = await screen.findByRole('img', { name: 'Result 1' });
    expect(added.closest('li')).toHaveTextContent('NEW');
    expect(screen.queryByRole('alert')).toBeNull();
  });

  test('a visitor has none, and is not asked for', async () => {
    const { api } = renderApp('/pricing', { api: withRuns('image-1') });
    await screen.findByRole('heading', { level: 1 });
    noIndicator();
    expect(looks(api)).toBe(0);
  });
});
