import { HttpResponse, http } from 'msw';
import { type User, UserManager } from 'oidc-client-ts';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import {
  createSession,
  identity,
  now,
  onSignedOut,
  prepareSessions,
  storageKey,
  storeUser,
} from '@/testing/bare-session';
import { server } from '@/testing/server';
import { IdentityClient } from './identity-client';
import { storeSignIn } from './stored-user';

prepareSessions();

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
  const user = await new IdentityClient(identity).getUser();
  const answer = Object.assign(user as User, { state });
  vi.spyOn(UserManager.prototype, 'signinCallback').mockResolvedValue(answer);
  window.history.replaceState(null, '', '/authcallback?code=1&state=2');
  const session = createSession();
  await vi.waitFor(() => expect(session.state.getState().user).not.toBeNull());
  expect(session.state.getState().returnTo).toBe(returnTo);
  window.history.replaceState(null, '', '/');
});

describe('a sign-in that cannot be finished, because its state was used already or it was canceled', () => {
  beforeEach(() => {
    vi.spyOn(UserManager.prototype, 'signinCallback').mockRejectedValue(new Error('No matching state'));
    window.history.replaceState(null, '', '/authcallback?code=1&state=2');
  });

  afterEach(() => {
    vi.restoreAllMocks();
    window.history.replaceState(null, '', '/');
  });

  test('continues as the user who is signed in', async () => {
    await storeUser(now() + 3600);
    const session = createSession();
    await vi.waitFor(() => expect(session.state.getState().isLoading).toBe(false));
    const { user, error } = session.state.getState();
    expect(user?.access_token).toBe('first');
    expect(error).toBeNull();
    expect(window.location.search).toBe('');
  });

  test('fails if nobody is signed in', async () => {
    const session = createSession();
    await vi.waitFor(() => expect(session.state.getState().isLoading).toBe(false));
    const { user, error } = session.state.getState();
    expect(user).toBeNull();
    expect(error).toEqual(new Error('No matching state'));
  });
});

test('signs out locally when the provider is unreachable', async () => {
  server.use(http.get(`${identity.issuer}/*`, () => HttpResponse.error()));
  await storeUser(now() + 3600);
  await storeSignIn('first');
  const session = createSession();
  await session.signOut();
  expect(session.state.getState()).toMatchObject({ user: null, isLoading: false, hasSignedOut: true });
  expect(localStorage).toHaveLength(0);
  await vi.waitFor(() => expect(onSignedOut).toHaveBeenCalledOnce());
});

test('leaves no note of the sign-in once the browser goes to the provider to sign out', async () => {
  vi.spyOn(UserManager.prototype, 'revokeTokens').mockResolvedValue();
  // As in a browser: the page is gone before this settles.
  const redirect = vi
    .spyOn(UserManager.prototype, 'signoutRedirect')
    .mockImplementation(() => new Promise(() => {}));
  await storeUser(now() + 3600);
  await storeSignIn('first');
  void createSession().signOut();
  await vi.waitFor(() => expect(redirect).toHaveBeenCalled());
  expect(Object.keys(localStorage)).toEqual([storageKey]);
});

test('a note of a sign-in does not contain the token', async () => {
  await storeSignIn('first');
  expect({ ...localStorage }).toEqual({ 'retouch-sign-in': expect.not.stringContaining('first') });
});
