import { screen, waitFor } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { delay, HttpResponse, http } from 'msw';
import { afterEach, expect, test, vi } from 'vitest';
import { anImage } from '@/testing/builders';
import { MockApi } from '@/testing/mock-api';
import { renderApp } from '@/testing/render-app';
import { server } from '@/testing/server';
import { storeSession } from '@/testing/session';

const HOURS = 3_600_000;

afterEach(() => vi.useRealTimers());

/** Opens a tool with a session that can be renewed, by a provider that takes its time. */
async function openAndSleep(api: MockApi, whileAsleep = () => {}) {
  storeSession(api.config.identity, { refresh_token: 'refresh' });
  const renewals = vi.fn(async () => {
    await delay(300);
    return HttpResponse.json({ access_token: 'renewed', token_type: 'Bearer', expires_in: 3600 });
  });
  const view = renderApp('/upscale/image-1', { api });
  server.use(
    http.get('http://identity.test/.well-known/openid-configuration', () =>
      HttpResponse.json({ issuer: 'http://identity.test', token_endpoint: 'http://identity.test/token' }),
    ),
    http.post('http://identity.test/token', renewals),
    // The API knows the time.
    http.all('*/api/*', ({ request }) => {
      const isValid =
        Date.now() < startedAt + HOURS || request.headers.get('Authorization') === 'Bearer renewed';
      const isPublic = request.url.includes('/api/config') || request.url.includes('/api/files');
      if (!isValid && !isPublic) return new HttpResponse(null, { status: 401 });
    }),
  );
  const startedAt = Date.now();
  const run = await screen.findByRole('button', { name: 'Upscale 4X' });
  await waitFor(() => expect(api.streams).toBe(1));
  whileAsleep();
  vi.useFakeTimers({ toFake: ['Date'], now: startedAt + 2 * HOURS });
  return { ...view, run, renewals };
}

test('a click right after waking waits for the renewal', async () => {
  const api = Object.assign(new MockApi(), { images: [anImage()] });
  const { run, renewals, router } = await openAndSleep(api);
  await waitFor(() => expect(run).toBeEnabled());
  await userEvent.click(run);
  expect(await screen.findByRole('img', { name: 'Result 1' })).toBeVisible();
  expect(screen.queryByText('Authentication token is missing.')).toBeNull();
  expect(renewals).toHaveBeenCalledOnce();
  expect(router.state.location.pathname).toBe('/upscale/image-1');
});

test('a paid run that continues while the phone sleeps stays in sight, and its result appears', async () => {
  const api = Object.assign(new MockApi(), { images: [anImage()], stepMs: 50 });
  const job = api.startJob({ tool: 'upscale', factor: 4, cost: 6, imageId: 'image-1', state: 'running' });
  const { run } = await openAndSleep(api, () => {
    api.isStreamBroken = true;
  });
  await screen.findByRole('progressbar');
  api.isStreamBroken = false;
  // The stream reconnects with a token that has expired. Meanwhile, nobody can start and pay the run again.
  await new Promise((resolve) => setTimeout(resolve, 600));
  expect(screen.getByRole('progressbar')).toBeVisible();
  expect(run).toBeDisabled();
  api.finish(job);
  expect(await screen.findByRole('img', { name: 'Result 1' })).toBeVisible();
  expect(await screen.findByRole('link', { name: 'credits 14' })).toBeVisible();
});
