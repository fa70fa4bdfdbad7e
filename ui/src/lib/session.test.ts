import { HttpResponse, http } from 'msw';
import { User, UserManager } from 'oidc-client-ts';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { aConfig } from '@/testing/builders';
import { server } from '@/testing/server';
import { createIdentityClient } from './identity-client';
import { Session } from './session';

const { identity } = aConfig();
const onEnd = vi.fn();
const onForget = vi.fn();

const begin = () => new Session(identity, { onEnd, onForget });
const now = () => Math.floor(Date.now() / 1000);

/** As the identity client itself leaves it behind after a sign-in. */
async function keepSession(expiresAt: number) {
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

/** The provider answers a request for a new token. */
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
  onEnd.mockReset();
  onForget.mockReset();
});

test('what the identity client has kept is there at once', async () => {
  await keepSession(now() + 3600);
  const { user, isLoading } = begin().state.getState();
  expect(user?.profile.email).toBe('ada@example.com');
  expect(isLoading).toBe(false);
});

test('a session that is over is nobody', async () => {
  await keepSession(now() - 1);
  expect(begin().state.getState().user).toBeNull();
});

test('a token is renewed in its last minute, and not before', async () => {
  const answer = vi.fn(() =>
    HttpResponse.json({ access_token: 'second', token_type: 'Bearer', expires_in: 3600 }),
  );
  answerRenewal(answer);
  await keepSession(now() + 90);
  const session = begin();
  vi.advanceTimersByTime(25_000);
  expect(answer).not.toHaveBeenCalled();
  vi.advanceTimersByTime(10_000);
  await vi.waitFor(() => expect(session.state.getState().user?.access_token).toBe('second'));
  expect(session.state.getState().user?.expires_at).toBeGreaterThan(now() + 3000);
  // The next page finds the new token.
  expect(begin().state.getState().user?.access_token).toBe('second');
  expect(onEnd).not.toHaveBeenCalled();
});

test('a refused renewal ends the session', async () => {
  answerRenewal(() => HttpResponse.json({ error: 'invalid_grant' }, { status: 400 }));
  await keepSession(now() + 30);
  const session = begin();
  vi.advanceTimersByTime(5_000);
  await vi.waitFor(() => expect(onEnd).toHaveBeenCalledOnce());
  expect(session.state.getState().user).toBeNull();
  expect(sessionStorage).toHaveLength(0);
});

test('a renewal that gets lost is tried again for as long as the token lasts', async () => {
  const answer = vi.fn(() => HttpResponse.error());
  answerRenewal(answer);
  await keepSession(now() + 30);
  const session = begin();
  vi.advanceTimersByTime(5_000);
  await vi.waitFor(() => expect(answer).toHaveBeenCalledOnce());
  await vi.waitFor(() => {
    vi.advanceTimersByTime(5_000);
    expect(answer).toHaveBeenCalledTimes(2);
  });
  expect(session.state.getState().user).not.toBeNull();
  await vi.waitFor(() => {
    vi.advanceTimersByTime(5_000);
    expect(onEnd).toHaveBeenCalledOnce();
  });
  expect(session.state.getState().user).toBeNull();
});

test('a sign-in that cannot begin says so', async () => {
  server.use(http.get(`${identity.issuer}/*`, () => HttpResponse.error()));
  await expect(begin().signIn('password')).rejects.toThrow();
});

test('a sign-in takes along the page that was asked for', async () => {
  const redirect = vi.spyOn(UserManager.prototype, 'signinRedirect').mockResolvedValue();
  await begin().signIn('password', { returnTo: '/upscale/image-1' });
  expect(redirect).toHaveBeenCalledWith(expect.objectContaining({ state: '/upscale/image-1' }));
});

test.each([
  ['/upscale/image-1?a=b', '/upscale/image-1?a=b'],
  ['https://evil.test/', null],
  ['//evil.test/', null],
  [undefined, null],
])('a sign-in for %j comes back to %j', async (state, returnTo) => {
  await keepSession(now() + 3600);
  const user = await createIdentityClient(identity).getUser();
  const answer = Object.assign(user as User, { state });
  vi.spyOn(UserManager.prototype, 'signinCallback').mockResolvedValue(answer);
  window.history.replaceState(null, '', '/authcallback?code=1&state=2');
  const session = begin();
  await vi.waitFor(() => expect(session.state.getState().user).not.toBeNull());
  expect(session.state.getState().returnTo).toBe(returnTo);
  window.history.replaceState(null, '', '/');
});

test('a sign-out without the provider still forgets who was here', async () => {
  server.use(http.get(`${identity.issuer}/*`, () => HttpResponse.error()));
  await keepSession(now() + 3600);
  const session = begin();
  await session.signOut();
  expect(session.state.getState()).toMatchObject({ user: null, isLoading: false, hasSignedOut: true });
  expect(sessionStorage).toHaveLength(0);
  await vi.waitFor(() => expect(onForget).toHaveBeenCalledOnce());
});
