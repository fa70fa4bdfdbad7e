import { act, screen, waitFor } from '@testing-library/react';
import { HttpResponse, http } from 'msw';
import { afterEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { queryKeys } from '@/lib/query-keys';
import { learnServerClock } from '@/lib/server-clock';
import { anImage, aResult } from '@/testing/builders';
import { MockApi } from '@/testing/mock-api';
import { renderApp } from '@/testing/render-app';
import { server } from '@/testing/server';

const hours = (count: number) => new Date(Date.now() + count * 3_600_000).toISOString();

function withResult() {
  return Object.assign(new MockApi(), {
    images: [anImage()],
    upscaled: [aResult({ imageId: 'old', factor: 2, createdAt: hours(-2) })],
  });
}

const open = (api: MockApi) => renderApp('/upscale/image-1', { api, signedIn: true });
const item = async (number: number) =>
  (await screen.findByRole('img', { name: `Result ${number}` })).closest('li');

function setVisibility(state: DocumentVisibilityState) {
  vi.spyOn(document, 'visibilityState', 'get').mockReturnValue(state);
  act(() => void document.dispatchEvent(new Event('visibilitychange')));
}

afterEach(() => vi.restoreAllMocks());

describe('NEW', () => {
  test('is not on what this person had before this browser showed it', async () => {
    open(withResult());
    expect(await item(1)).not.toHaveTextContent('NEW');
  });

  test('is on what another device has made since the last look, and stays through refetches', async () => {
    const api = withResult();
    const { unmount } = open(api);
    await item(1);
    unmount();
    api.upscaled = [...api.upscaled, aResult({ imageId: 'new', factor: 4, createdAt: hours(1) })];
    const { queryClient } = open(api);
    expect(await item(2)).toHaveTextContent('NEW');
    await act(() => queryClient.refetchQueries({ queryKey: ['upscaled-images', 'image-1'] }));
    expect(await item(2)).toHaveTextContent('NEW');
    expect(await item(1)).not.toHaveTextContent('NEW');
  });

  test('is on new results also where the clock of the computer is ahead', async () => {
    learnServerClock(new Date(hours(-3)).toUTCString());
    onTestFinished(() => learnServerClock(new Date().toUTCString()));
    const api = withResult();
    api.upscaled = [aResult({ imageId: 'old', factor: 2, createdAt: hours(-4) })];
    const { unmount } = open(api);
    await item(1);
    unmount();
    api.upscaled = [...api.upscaled, aResult({ imageId: 'new', factor: 4, createdAt: hours(-2.9) })];
    open(api);
    expect(await item(2)).toHaveTextContent('NEW');
    expect(await item(1)).not.toHaveTextContent('NEW');
  });

  test('ends with the look', async () => {
    const api = withResult();
    api.upscaled = [...api.upscaled, aResult({ imageId: 'new', factor: 4, createdAt: hours(1) })];
    const { unmount } = open(api);
    expect(await item(2)).toHaveTextContent('NEW');
    unmount();
    open(api);
    expect(await item(2)).not.toHaveTextContent('NEW');
  });

  test('is on the newest run only, while one looks on', async () => {
    const api = withResult();
    open(api);
    await item(1);
    await waitFor(() => expect(api.streams).toBe(1));
    for (const number of [2, 3]) {
      api.runJob({ tool: 'upscale', factor: 2, cost: 0, imageId: 'image-1' });
      expect(await item(number)).toHaveTextContent('NEW');
    }
    expect(await item(2)).not.toHaveTextContent('NEW');
  });

  test('is on everything that was made while the tab was hidden', async () => {
    const api = withResult();
    open(api);
    await item(1);
    await waitFor(() => expect(api.streams).toBe(1));
    setVisibility('hidden');
    for (const number of [2, 3]) {
      api.runJob({ tool: 'upscale', factor: 2, cost: 0, imageId: 'image-1' });
      await item(number);
    }
    setVisibility('visible');
    expect(await item(2)).toHaveTextContent('NEW');
    expect(await item(3)).toHaveTextContent('NEW');
  });

  test('leaves nothing in this browser once the account was deleted elsewhere', async () => {
    const { queryClient } = open(withResult());
    await item(1);
    expect(localStorage.getItem('retouch-looks:user-1')).not.toBeNull();
    server.use(
      http.get('*/api/user/get', () =>
        HttpResponse.json({ code: 'account_deleted', detail: 'It is gone' }, { status: 401 }),
      ),
    );
    void queryClient.invalidateQueries({ queryKey: queryKeys.user });
    await waitFor(() => expect(screen.queryByRole('img', { name: 'Result 1' })).toBeNull());
    expect(localStorage.getItem('retouch-looks:user-1')).toBeNull();
  });
});
