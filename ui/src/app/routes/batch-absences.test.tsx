import { act, fireEvent, screen, waitFor, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { HttpResponse, http } from 'msw';
import { beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { type Batch, restoreBatches, useBatches } from '@/features/batch/batch-store';
import { removeBackground } from '@/features/catalog/remove-background';
import { aFile, choose, reloadBatches, resetBatches, rowOf, runs, start, three } from '@/testing/batch';
import { aJob, anImage, aResult } from '@/testing/builders';
import { MockApi } from '@/testing/mock-api';
import { renderApp } from '@/testing/render-app';
import { server } from '@/testing/server';
import { storeSession } from '@/testing/session';
import { toastsAreShown } from '@/testing/toasts';

// jsdom cannot decode images or save files.
vi.mock('@/lib/image-size', () => ({ readImageSize: vi.fn() }));
vi.mock('@/lib/download', () => ({ saveFile: vi.fn() }));

beforeEach(resetBatches);

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
    window.dispatchEvent(new Event('pagehide'));
    expect(sessionStorage.getItem('retouch-batches')).toBeNull();
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
    // The credits cover four.
    await start(4);
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

  test('waits for the network if the token has expired as well, and knows that nothing was sent', async () => {
    const api = new MockApi();
    storeSession(api.config.identity, { refresh_token: 'refresh' });
    renderApp('/remove-background', { api });
    server.use(
      http.get('http://identity.test/.well-known/openid-configuration', () => {
        if (!navigator.onLine) return HttpResponse.error();
        const issuer = 'http://identity.test';
        return HttpResponse.json({ issuer, token_endpoint: `${issuer}/token` });
      }),
      http.post('http://identity.test/token', () =>
        HttpResponse.json({ access_token: 'renewed', token_type: 'Bearer', expires_in: 3600 }),
      ),
    );
    onTestFinished(() => void vi.useRealTimers());
    // The phone sleeps after the upload.
    let goOnline = () => {};
    const sleep = http.post('*/api/images/upload', () => {
      goOnline = goOffline();
      vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 7_200_000 });
    });
    server.use(sleep);
    await choose([aFile('one.png'), aFile('two.png')]);
    await start(2);
    await waitFor(() =>
      expect(screen.getAllByText('Waiting for the network. This continues automatically.')).toHaveLength(2),
    );
    expect(runs(api)).toEqual([]);
    const unsent = { kind: 'failed', reason: 'Not started before the reload' };
    window.dispatchEvent(new Event('pagehide'));
    expect(restoreBatches()['remove-background']?.items.map(({ state }) => state)).toEqual([unsent, unsent]);
    goOnline();
    expect(await screen.findByText('2 of 2 done')).toBeVisible();
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

describe('a batch that ends while another page is open', () => {
  test('is reported once, with a link', async () => {
    const api = Object.assign(new MockApi(), { stepMs: 60 });
    const { router } = renderApp('/remove-background', { api, signedIn: true });
    await choose(three());
    await start(3);
    await waitFor(() => expect(api.jobs).toHaveLength(3));
    await act(() => router.navigate('/pricing'));
    Object.assign(api.jobs[1] ?? {}, { state: 'failed' });
    const report = await screen.findByText(/^Remove Background: /);
    expect(report).toHaveTextContent('2 of 3 done · 1 failed');
    expect(screen.getAllByRole('alert')).toHaveLength(1);
    await userEvent.click(within(report).getByRole('link', { name: 'Show it' }));
    expect(await screen.findByRole('list', { name: '3 images' })).toBeVisible();
  });

  test('is no success if all its runs were canceled elsewhere', async () => {
    const api = Object.assign(new MockApi(), { stepMs: 60 });
    const { router } = renderApp('/remove-background', { api, signedIn: true });
    await choose(three());
    await start(3);
    await waitFor(() => expect(api.jobs).toHaveLength(3));
    await act(() => router.navigate('/pricing'));
    for (const job of api.jobs) Object.assign(job, { state: 'cancelled' });
    const report = await screen.findByText(/^Remove Background: 0 of 3 done · 3 canceled/);
    expect(report.closest('.Toastify__toast')).toHaveClass('Toastify__toast--info');
  });

  test('is reported even if that page was loaded again', async () => {
    const api = Object.assign(new MockApi(), { stepMs: 60, images: [anImage()] });
    const job = api.runJob({ idempotencyKey: 'batch-a' });
    useBatches.setState({ 'remove-background': aBatch([item({ jobId: job.id, key: 'batch-a' })]) });
    reloadBatches();
    const { router } = renderApp('/pricing', { api, signedIn: true });
    const report = await screen.findByText(/^Remove Background: 1 of 1 done/);
    await userEvent.click(within(report).getByRole('link', { name: 'Show it' }));
    expect(router.state.location.pathname).toBe('/remove-background');
    expect(await screen.findByText('1 of 1 done')).toBeVisible();
  });

  test('is not reported again after a reload', async () => {
    const api = Object.assign(new MockApi(), { images: [anImage()] });
    api.jobs = [aJob({ state: 'done', results: [aResult()] })];
    const done = item({ jobId: 'job-1', state: { kind: 'done', result: aResult() } });
    useBatches.setState({ 'remove-background': aBatch([done]) });
    reloadBatches();
    renderApp('/pricing', { api, signedIn: true });
    await screen.findByRole('link', { name: 'credits 20' });
    await new Promise((resolve) => setTimeout(resolve, 300));
    await toastsAreShown();
    expect(screen.queryByText(/^Remove Background: /)).toBeNull();
  });

  test('is not reported on its own page', async () => {
    renderApp('/remove-background', { signedIn: true });
    await choose(three());
    await start(3);
    expect(await screen.findByText('3 of 3 done')).toBeVisible();
    await toastsAreShown();
    expect(screen.queryByText(/^Remove Background: /)).toBeNull();
  });
});

describe('a batch that people come back to', () => {
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
    reloadBatches();
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
    reloadBatches();
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
    reloadBatches();
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
    reloadBatches();
    reloadBatches();
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
    reloadBatches();
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
    reloadBatches();
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

  test('shows its pictures again after their URLs have expired', async () => {
    const urlAt = (seconds: number) => `/api/files/a?expires=${seconds}&signature=b`;
    const [expired, valid] = [urlAt(1), urlAt(Math.floor(Date.now() / 1000) + 3600)];
    const result = aResult({ url: expired, thumbnailUrl: expired });
    useBatches.setState({
      'remove-background': aBatch([
        item({ jobId: 'job-1', state: { kind: 'done', result } }),
        item({ id: 'b', name: 'two.png', jobId: 'job-2', state: { kind: 'done', result } }),
      ]),
    });
    const api = new MockApi();
    api.jobs = [aJob({ state: 'done', results: [aResult({ url: valid, thumbnailUrl: valid })] })];
    renderApp('/remove-background', { api, signedIn: true });
    await screen.findByText('2 of 2 done');
    const picture = () => rowOf('one.png').querySelector('img') as HTMLImageElement;
    fireEvent.error(picture());
    await waitFor(() => expect(picture()).toHaveAttribute('src', valid));
    // A picture that is broken for another reason is not asked for.
    fireEvent.error(picture());
    expect(api.calls.filter((call) => call.startsWith('GET /api/jobs/'))).toEqual(['GET /api/jobs/job-1']);
  });
});
