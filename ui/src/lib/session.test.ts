import { HttpResponse, http } from 'msw';
import { User, UserManager } from 'oidc-client-ts';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { aConfig } from '@/testing/builders';
import { server } from '@/testing/server';
import { createIdentityClient } from './identity-client';
import { Session } from './session';

const { identity } = aConfig();
const onExpired = vi.fn();
const onSignedOut = vi.fn();

const createSession = () => new Session(identity, { onExpired, onSignedOut });
const now = () => Math.floor(Date.now() / 1000);

/** Stores a user as the identity client does after a sign-in. */
async function storeUser(expiresAt: number) {
  await createIdentityClient(identity).storeUser(
    new User({
      access_token: 'first',
      refresh_token: 'refresh',
      token_type: 'Bearer',
      profile: {
        sub: 'user-1',
        email: 'ada@example.com',
        iss: identity.issuer,
        aud: identity.clientId,
        exp: 0,
        iat: 0,
      },
      expires_at: expiresAt,
    }),
  );
}

/** Sets the provider's answer to token renewals. */
function answerRenewal(answer: () => Response) {
  server.use(
    http.get(`${identity.issuer}/.well-known/openid-configuration`, () =>
      HttpResponse.json({ issuer: identity.issuer, token_endpoint: `${identity.issuer}/token` }),
    ),
    http.post(`${identity.issuer}/token`, answer),
  );
}

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setInterval', 'Date'] });
});

afterEach(() => {
  vi.clearAllTimers();
  vi.useRealTimers();
  onExpired.mockReset();
  onSignedOut.mockReset();
});

test('restores the stored user at once', async () => {
  await storeUser(now() + 3600);
  const { user, isLoading } = createSession().state.getState();
  expect(user?.profile.email).toBe('ada@example.com');
  expect(isLoading).toBe(false);
});

test('ignores an expired user', async () => {
  await storeUser(now() - 1);
  expect(createSession().state.getState().user).toBeNull();
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
  const session = createSession();
  vi.advanceTimersByTime(5_000);
  await vi.waitFor(() => expect(onExpired).toHaveBeenCalledOnce());
  expect(session.state.getState().user).toBeNull();
  expect(sessionStorage).toHaveLength(0);
});

test('retries a renewal after network errors while the token is valid', async () => {
  const answer = vi.fn(() => HttpResponse.error());
  answerRenewal(answer);
  await storeUser(now() + 30);
  const session = createSession();
  vi.advanceTimersByTime(5_000);
  await vi.waitFor(() => expect(answer).toHaveBeenCalledOnce());
  await vi.waitFor(() => {
    vi.advanceTimersByTime(5_000);
    expect(answer).toHaveBeenCalledTimes(2);
  });
  expect(session.state.getState().user).not.toBeNull();
  await vi.waitFor(() => {
    vi.advanceTimersByTime(5_000);
    expect(onExpired).toHaveBeenCalledOnce();
  });
  expect(session.state.getState().user).toBeNull();
});

test('rejects a sign-in that cannot start', async () => {
  server.use(http.get(`${identity.issuer}/*`, () => HttpResponse.error()));
  await expect(createSession().signIn('password')).rejects.toThrow();
});

test('passes the page to return to through the sign-in', async () => {
  const redirect = vi.spyOn(UserManager.prototype, 'signinRedirect').mockResolvedValue();
  await createSession().signIn('password', { returnTo: '/upscale/image-1' });
  expect(redirect).toHaveBeenCalledWith(expect.objectContaining({ state: '/upscale/image-1' }));
});

test.each([
  ['/upscale/image-1?a=b', '/upscale/image-1?a=b'],
  ['https://evil.test/', null],
  ['//evil.test/', null],
  [undefined, null],
])('a sign-in with the state %j returns to %j', async (state, returnTo) => {
  await storeUser(now() + 3600);
  const user = await createIdentityClient(identity).getUser();
  const answer = Object.assign(user as User, { state });
  vi.spyOn(UserManager.prototype, 'signinCallback').mockResolvedValue(answer);
  window.history.replaceState(null, '', '/authcallback?code=1&state=2');
  const session = createSession();
  await vi.waitFor(() => expect(session.state.getState().user).not.toBeNull());
  expect(session.state.getState().returnTo).toBe(returnTo);
  window.history.replaceState(null, '', '/');
});

test('signs out locally when the provider is unreachable', async () => {
  server.use(http.get(`${identity.issuer}/*`, () => HttpResponse.error()));
  await storeUser(now() + 3600);
  const session = createSession();
  await session.signOut();
  expect(session.state.getState()).toMatchObject({ user: null, isLoading: false, hasSignedOut: true });
  expect(sessionStorage).toHaveLength(0);
  await vi.waitFor(() => expect(onSignedOut).toHaveBeenCalledOnce());
});
