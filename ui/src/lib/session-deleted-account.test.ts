import { HttpResponse, http } from 'msw';
import { type User, UserManager } from 'oidc-client-ts';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import {
  answerRenewal,
  createSession,
  identity,
  now,
  onExpired,
  prepareSessions,
  storageKey,
  storeUser,
  tellOtherTabs,
} from '@/testing/bare-session';
import { server } from '@/testing/server';
import { api } from './api-client';
import { IdentityClient } from './identity-client';
import { storeSignIn } from './stored-user';

prepareSessions();

test('signs out of a deleted account without renewing its token', async () => {
  const renewal = vi.fn(() => HttpResponse.error());
  answerRenewal(renewal);
  await storeUser(now() + 3600);
  const session = createSession();
  const answer = { code: 'account_deleted', detail: 'This account was deleted.' };
  server.use(http.get('*/api/user/get', () => HttpResponse.json(answer, { status: 401 })));
  await api.GET('/api/user/get');
  expect(session.state.getState()).toMatchObject({ user: null, hasSignedOut: true });
  expect(renewal).not.toHaveBeenCalled();
  expect(onExpired).not.toHaveBeenCalled();
});

describe('an account that was deleted', () => {
  const requests: string[] = [];

  /** Refuses tokens until somebody asks to start again. */
  beforeEach(() => {
    requests.length = 0;
    let hasStarted = false;
    const answer = { code: 'account_deleted', detail: 'This account was deleted.' };
    server.use(
      http.get('*/api/user/get', () => {
        requests.push('get');
        return hasStarted ? HttpResponse.json({}) : HttpResponse.json(answer, { status: 401 });
      }),
      http.post('*/api/user', ({ request }) => {
        requests.push(`start as ${request.headers.get('Authorization')}`);
        hasStarted = true;
        return new HttpResponse(null, { status: 204 });
      }),
    );
  });

  test('starts again when its owner signs in', async () => {
    await storeUser(now() + 3600);
    const user = await new IdentityClient(identity).getUser();
    vi.spyOn(UserManager.prototype, 'signinCallback').mockResolvedValue(user as User);
    window.history.replaceState(null, '', '/authcallback?code=1&state=2');
    const session = createSession();
    await vi.waitFor(() => expect(session.state.getState().user).not.toBeNull());
    window.history.replaceState(null, '', '/');

    expect((await api.GET('/api/user/get')).response.status).toBe(200);
    expect(requests).toEqual(['get', 'start as Bearer first', 'get']);
    expect(session.state.getState().user).not.toBeNull();
  });

  test('starts again when its owner signs in in another tab', async () => {
    const session = createSession();
    await storeUser(now() + 3600);
    await storeSignIn('first');
    tellOtherTabs();
    expect((await api.GET('/api/user/get')).response.status).toBe(200);
    expect(session.state.getState().user).not.toBeNull();
  });

  test('keeps its owner signed in while the API cannot start it', async () => {
    await storeUser(now() + 3600);
    await storeSignIn('first');
    const session = createSession();
    server.use(http.post('*/api/user', () => new HttpResponse(null, { status: 503 }), { once: true }));
    await expect(api.GET('/api/user/get')).rejects.toThrow();
    expect(session.state.getState().user).not.toBeNull();
    expect((await api.GET('/api/user/get')).response.status).toBe(200);
  });

  test.each([
    ['that was asleep renews its token', now() - 3600],
    ['is opened', now() + 3600],
  ])('does not start again when a page %s', async (_, expiresAt) => {
    answerRenewal(() =>
      HttpResponse.json({ access_token: 'second', token_type: 'Bearer', expires_in: 3600 }),
    );
    await storeUser(expiresAt);
    const session = createSession();
    expect((await api.GET('/api/user/get')).response.status).toBe(401);
    expect(requests).toEqual(['get']);
    expect(session.state.getState()).toMatchObject({ user: null, hasSignedOut: true });
  });

  test('does not start again when another tab renews its token', async () => {
    await storeUser(now() + 3600);
    await storeSignIn('first');
    const session = createSession();
    const renewed = { ...session.state.getState().user, access_token: 'second' };
    localStorage.setItem(storageKey, JSON.stringify(renewed));
    tellOtherTabs();
    expect((await api.GET('/api/user/get')).response.status).toBe(401);
    expect(requests).toEqual(['get']);
  });
});

test('signs out of a deleted account whose token was renewed meanwhile', async () => {
  answerRenewal(() => HttpResponse.json({ access_token: 'second', token_type: 'Bearer', expires_in: 3600 }));
  await storeUser(now() + 3600);
  const session = createSession();
  const answer = { code: 'account_deleted', detail: 'This account was deleted.' };
  let calls = 0;
  server.use(
    http.get('*/api/user/get', () => {
      calls += 1;
      return calls === 1
        ? new HttpResponse(null, { status: 401 })
        : HttpResponse.json(answer, { status: 401 });
    }),
  );
  await api.GET('/api/user/get');
  expect(calls).toBe(2);
  expect(session.state.getState()).toMatchObject({ user: null, hasSignedOut: true });
  expect(onExpired).not.toHaveBeenCalled();
});
