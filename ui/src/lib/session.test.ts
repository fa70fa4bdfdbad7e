import { delay, HttpResponse, http } from 'msw';
import { expect, test, vi } from 'vitest';
import {
  answerRenewal,
  createSession,
  now,
  onExpired,
  prepareSessions,
  storageKey,
  storeUser,
} from '@/testing/bare-session';
import { server } from '@/testing/server';
import { api } from './api-client';
import { ProviderUnavailable } from './provider-unavailable';
import { storeSignIn } from './stored-user';

prepareSessions();

test('restores the stored user at once', async () => {
  await storeUser(now() + 3600);
  const { user, isLoading } = createSession().state.getState();
  expect(user?.profile.email).toBe('ada@example.com');
  expect(isLoading).toBe(false);
});

test('ignores an expired user without a refresh token', async () => {
  await storeUser(now() - 1, '');
  expect(createSession().state.getState().user).toBeNull();
});

test('an expired token is renewed after a reload, and every call waits for the same renewal', async () => {
  const answer = vi.fn(async () => {
    await delay(50);
    return HttpResponse.json({ access_token: 'second', token_type: 'Bearer', expires_in: 3600 });
  });
  answerRenewal(answer);
  await storeUser(now() - 7200);
  const session = createSession();
  expect(session.state.getState().user).not.toBeNull();
  expect(await Promise.all([session.token(), session.token(), session.token()])).toEqual(
    Array(3).fill('second'),
  );
  expect(answer).toHaveBeenCalledOnce();
  expect(onExpired).not.toHaveBeenCalled();
});

test('a refused call is sent once more with a renewed token', async () => {
  answerRenewal(() => HttpResponse.json({ access_token: 'second', token_type: 'Bearer', expires_in: 3600 }));
  await storeUser(now() + 3600);
  createSession();
  const seen: (string | null)[] = [];
  server.use(
    http.post('*/api/upscale/upscale-ai-4', ({ request }) => {
      seen.push(request.headers.get('Authorization'));
      return seen.length === 1 ? new HttpResponse(null, { status: 401 }) : HttpResponse.json([]);
    }),
  );
  const answer = await api.POST('/api/upscale/upscale-ai-4', { params: { query: { imageId: 'image-1' } } });
  expect(answer.response.status).toBe(200);
  expect(seen).toEqual(['Bearer first', 'Bearer second']);
  expect(onExpired).not.toHaveBeenCalled();
});

test('a 404 while the renewal is due is asked again after it', async () => {
  answerRenewal(async () => {
    await delay(50);
    return HttpResponse.json({ access_token: 'second', token_type: 'Bearer', expires_in: 3600 });
  });
  await storeUser(now() + 30);
  createSession();
  const seen: (string | null)[] = [];
  server.use(
    http.get('*/api/jobs/:id', ({ request }) => {
      seen.push(request.headers.get('Authorization'));
      // The computer sleeps while the call is on its way.
      if (seen.length === 1) vi.setSystemTime(Date.now() + 2 * 3_600_000);
      return seen.length === 1 ? new HttpResponse(null, { status: 404 }) : HttpResponse.json({});
    }),
  );
  const answer = await api.GET('/api/jobs/{jobId}', { params: { path: { jobId: 'job-1' } } });
  expect(answer.response.status).toBe(200);
  expect(seen).toEqual(['Bearer first', 'Bearer second']);
});

test('ends the session when the API refuses a renewed token', async () => {
  answerRenewal(() => HttpResponse.json({ access_token: 'second', token_type: 'Bearer', expires_in: 3600 }));
  await storeUser(now() + 3600);
  createSession();
  server.use(http.get('*/api/user/get', () => new HttpResponse(null, { status: 401 })));
  await api.GET('/api/user/get');
  expect(onExpired).toHaveBeenCalledOnce();
});

test('renews the token in its last minute, not earlier', async () => {
  const answer = vi.fn(() =>
    HttpResponse.json({ access_token: 'second', token_type: 'Bearer', expires_in: 3600 }),
  );
  answerRenewal(answer);
  await storeUser(now() + 90);
  const session = createSession();
  vi.advanceTimersByTime(25_000);
  expect(answer).not.toHaveBeenCalled();
  vi.advanceTimersByTime(10_000);
  await vi.waitFor(() => expect(session.state.getState().user?.access_token).toBe('second'));
  expect(session.state.getState().user?.expires_at).toBeGreaterThan(now() + 3000);
  // A reload restores the new token.
  expect(createSession().state.getState().user?.access_token).toBe('second');
  expect(onExpired).not.toHaveBeenCalled();
});

test('ends the session when the renewal is refused', async () => {
  answerRenewal(() => HttpResponse.json({ error: 'invalid_grant' }, { status: 400 }));
  await storeUser(now() + 30);
  await storeSignIn('first');
  const session = createSession();
  vi.advanceTimersByTime(5_000);
  await vi.waitFor(() => expect(onExpired).toHaveBeenCalledOnce());
  expect(session.state.getState().user).toBeNull();
  expect({ ...localStorage }).toEqual({ [storageKey]: '{"expires_at":0}' });
});

test.each([
  ['without a network', () => HttpResponse.error()],
  ['while the provider is down', () => new HttpResponse('<h1>Bad gateway</h1>', { status: 502 })],
  [
    'while the provider is busy',
    () => HttpResponse.json({ error: 'temporarily_unavailable' }, { status: 503 }),
  ],
])('retries a renewal %s for as long as it takes, also after the token has expired', async (_, fail) => {
  const answer = vi.fn(fail);
  answerRenewal(answer);
  await storeUser(now() + 6);
  const session = createSession();
  for (let attempt = 1; attempt <= 4; attempt += 1) {
    await vi.waitFor(() => {
      vi.advanceTimersByTime(5_000);
      expect(answer.mock.calls.length).toBeGreaterThanOrEqual(attempt);
    });
  }
  expect(session.state.getState().user).not.toBeNull();
  await expect(session.token()).rejects.toThrow(ProviderUnavailable);

  answerRenewal(() => HttpResponse.json({ access_token: 'second', token_type: 'Bearer', expires_in: 3600 }));
  window.dispatchEvent(new Event('online'));
  await vi.waitFor(() => expect(session.state.getState().user?.access_token).toBe('second'));
  expect(onExpired).not.toHaveBeenCalled();
});
