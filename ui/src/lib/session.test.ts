import { delay, HttpResponse, http } from 'msw';
import { User, UserManager } from 'oidc-client-ts';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { aConfig } from '@/testing/builders';
import { aLockManager } from '@/testing/lock-manager';
import { server } from '@/testing/server';
import { api } from './api-client';
import { IdentityClient } from './identity-client';
import { ProviderUnavailable } from './provider-unavailable';
import { Session } from './session';
import { storeSignIn } from './stored-user';

const { identity } = aConfig();
const onExpired = vi.fn();
const onSignedOut = vi.fn();

const onUserChanged = vi.fn();
const sessions: Session[] = [];

function createSession() {
  const session = new Session(identity, { onExpired, onSignedOut, onUserChanged });
  sessions.push(session);
  return session;
}

const storageKey = `oidc.user:${identity.issuer}:${identity.clientId}`;
/** Notifies this tab as the browser would notify every other tab. */
const tellOtherTabs = () => window.dispatchEvent(new StorageEvent('storage', { key: storageKey }));
const now = () => Math.floor(Date.now() / 1000);

/** Stores a user as the identity client does after a sign-in. */
async function storeUser(expiresAt: number, refreshToken: string | undefined = 'refresh', sub = 'user-1') {
  await new IdentityClient(identity).storeUser(
    new User({
      access_token: 'first',
      refresh_token: refreshToken,
      token_type: 'Bearer',
      profile: {
        sub,
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
function answerRenewal(answer: () => Response | Promise<Response>) {
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
  for (const session of sessions.splice(0)) session.dispose();
  vi.clearAllTimers();
  vi.useRealTimers();
  vi.unstubAllGlobals();
  onExpired.mockReset();
  onSignedOut.mockReset();
  onUserChanged.mockReset();
});

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

test.each([
  [1, 'the token'],
  [2, 'its renewed token'],
])('a sign-in survives the refusal of an older token: attempt %i, %s', async (refused) => {
  answerRenewal(() => HttpResponse.json({ access_token: 'second', token_type: 'Bearer', expires_in: 3600 }));
  await storeUser(now() + 3600);
  const session = createSession();
  const answer = { code: 'account_deleted', detail: 'This account was deleted.' };
  let calls = 0;
  server.use(
    http.get('*/api/user/get', () => {
      calls += 1;
      if (calls < refused) return new HttpResponse(null, { status: 401 });
      if (calls > refused) return HttpResponse.json({});
      // The user signs in in another tab while the body of the answer is on its way.
      const body = new ReadableStream({
        start: async (controller) => {
          await delay(20);
          const user = { ...session.state.getState().user, access_token: 'fresh' };
          localStorage.setItem(storageKey, JSON.stringify(user));
          tellOtherTabs();
          controller.enqueue(new TextEncoder().encode(JSON.stringify(answer)));
          controller.close();
        },
      });
      return new HttpResponse(body, { status: 401 });
    }),
  );
  await api.GET('/api/user/get');
  expect(session.state.getState()).toMatchObject({
    user: { access_token: 'fresh' },
    hasSignedOut: false,
  });
  expect(onExpired).not.toHaveBeenCalled();
});

test.each([
  ['deleted', { code: 'account_deleted', detail: 'This account was deleted.' }],
  ['refused', { detail: 'Sign in again.' }],
])('a tab that was frozen leaves the sign-in of another one when its old token is %s', async (_, body) => {
  await storeUser(now() + 3600, '');
  const session = createSession();
  server.use(http.get('*/api/user/get', () => HttpResponse.json(body, { status: 401 })));
  const fresh = { ...session.state.getState().user, access_token: 'fresh' };
  localStorage.setItem(storageKey, JSON.stringify(fresh));
  await storeSignIn('fresh');
  await api.GET('/api/user/get');
  expect(session.state.getState()).toMatchObject({
    user: { access_token: 'fresh' },
    hasSignedOut: false,
  });
  expect(localStorage.getItem(storageKey)).toContain('fresh');
  expect(localStorage.getItem('retouch-sign-in')).not.toBeNull();
  expect(onExpired).not.toHaveBeenCalled();
});

test('a sign-in during a renewal survives its refusal', async () => {
  await storeUser(now() - 1);
  const session = createSession();
  answerRenewal(() => {
    const fresh = { ...session.state.getState().user, access_token: 'fresh', expires_at: now() + 3600 };
    localStorage.setItem(storageKey, JSON.stringify(fresh));
    return HttpResponse.json({ error: 'invalid_grant' }, { status: 400 });
  });
  expect(await session.token()).toBe('fresh');
  expect(localStorage.getItem(storageKey)).toContain('fresh');
  expect(onExpired).not.toHaveBeenCalled();
});

test('a tab takes the token that another one has renewed', async () => {
  const answer = vi.fn(() =>
    HttpResponse.json({
      access_token: 'second',
      refresh_token: 'rotated',
      token_type: 'Bearer',
      expires_in: 3600,
    }),
  );
  answerRenewal(answer);
  vi.stubGlobal('navigator', Object.assign(Object.create(navigator), { locks: aLockManager() }));
  await storeUser(now() + 1);
  const tabs = [createSession(), createSession(), createSession()];
  expect(await Promise.all(tabs.map((tab) => tab.token()))).toEqual(Array(3).fill('second'));
  // A second use of the refresh token would end the session.
  expect(answer).toHaveBeenCalledOnce();
});

test('follows another tab that renews, signs out, and signs in', async () => {
  await storeUser(now() + 3600);
  const session = createSession();
  const signedOut = createSession();
  localStorage.setItem(
    storageKey,
    JSON.stringify({ ...session.state.getState().user, access_token: 'theirs' }),
  );
  tellOtherTabs();
  expect(await session.token()).toBe('theirs');

  localStorage.removeItem(storageKey);
  tellOtherTabs();
  expect(signedOut.state.getState()).toMatchObject({ user: null, hasSignedOut: true });
  await vi.waitFor(() => expect(onSignedOut).toHaveBeenCalled());

  await storeUser(now() + 3600);
  tellOtherTabs();
  expect(await session.token()).toBe('first');
});

test('an expiry after another sign-in is no sign-out', async () => {
  await storeUser(now() + 3600);
  const session = createSession();
  localStorage.removeItem(storageKey);
  tellOtherTabs();
  await storeUser(now() + 3600);
  tellOtherTabs();
  localStorage.setItem(storageKey, '{"expires_at":0}');
  tellOtherTabs();
  expect(onExpired).toHaveBeenCalledOnce();
  expect(session.state.getState()).toMatchObject({ user: null, hasSignedOut: false });
});

describe('a session that expires in another tab', () => {
  beforeEach(() => sessionStorage.setItem('retouch-magic-fix', 'a mask'));

  async function expireInAnotherTab() {
    answerRenewal(() => HttpResponse.json({ error: 'invalid_grant' }, { status: 400 }));
    await storeUser(now() - 1);
    const [session, other] = [createSession(), createSession()];
    await other.token();
    expect(other.state.getState().user).toBeNull();
    tellOtherTabs();
    return session;
  }

  test('ends here too, and keeps the work of this tab', async () => {
    const session = await expireInAnotherTab();
    expect(session.state.getState()).toMatchObject({ user: null, hasSignedOut: false });
    expect(onExpired).toHaveBeenCalledTimes(2);
    expect(sessionStorage.getItem('retouch-magic-fix')).toBe('a mask');
  });

  test('can be followed by another one, whose sign-out clears everything', async () => {
    const session = await expireInAnotherTab();
    await storeUser(now() + 3600);
    tellOtherTabs();
    expect(await session.token()).toBe('first');
    expect(sessionStorage.getItem('retouch-magic-fix')).toBe('a mask');
    localStorage.removeItem(storageKey);
    tellOtherTabs();
    expect(session.state.getState()).toMatchObject({ user: null, hasSignedOut: true });
    expect(sessionStorage.getItem('retouch-magic-fix')).toBeNull();
  });

  test('leaves nothing to another user who signs in there', async () => {
    await expireInAnotherTab();
    await storeUser(now() + 3600, 'other', 'user-2');
    tellOtherTabs();
    expect(onUserChanged).toHaveBeenCalled();
    expect(sessionStorage.getItem('retouch-magic-fix')).toBeNull();
  });

  test('leaves nothing to another user who signs in here', async () => {
    await expireInAnotherTab();
    await storeUser(now() + 3600, 'other', 'user-2');
    const user = await new IdentityClient(identity).getUser();
    vi.spyOn(UserManager.prototype, 'signinCallback').mockResolvedValue(user as User);
    window.history.replaceState(null, '', '/authcallback?code=1&state=2');
    const session = createSession();
    await vi.waitFor(() => expect(session.state.getState().user).not.toBeNull());
    expect(sessionStorage.getItem('retouch-magic-fix')).toBeNull();
    window.history.replaceState(null, '', '/');
  });
});

test('tabs that renew at once leave the mark of the expiry for those that look later', async () => {
  answerRenewal(() => HttpResponse.json({ error: 'invalid_grant' }, { status: 400 }));
  vi.stubGlobal('navigator', Object.assign(Object.create(navigator), { locks: aLockManager() }));
  await storeUser(now() - 1);
  const [first, second] = [createSession(), createSession()];
  // The second hears of the expiry while it waits for its turn.
  onExpired.mockImplementationOnce(tellOtherTabs);
  await Promise.all([first.token(), second.token()]);
  expect(onExpired).toHaveBeenCalledTimes(2);
  expect(localStorage.getItem(storageKey)).not.toBeNull();
});

describe('a tab with the work of a user whose session ended', () => {
  beforeEach(() => sessionStorage.setItem('retouch-magic-fix', 'a mask'));

  async function anotherUserSignsIn() {
    await storeUser(now() + 3600, 'other', 'user-2');
    tellOtherTabs();
  }

  test('leaves nothing to another user after it was loaded again', async () => {
    await storeUser(now() + 3600);
    createSession().dispose();
    // The session ends in another tab while the browser has put this one aside.
    localStorage.setItem(storageKey, '{"expires_at":0}');
    createSession();
    await anotherUserSignsIn();
    expect(onUserChanged).toHaveBeenCalledOnce();
    expect(sessionStorage.getItem('retouch-magic-fix')).toBeNull();
  });

  test('starts empty if another user has signed in meanwhile', async () => {
    await storeUser(now() + 3600);
    createSession().dispose();
    await storeUser(now() + 3600, 'other', 'user-2');
    createSession();
    expect(sessionStorage.getItem('retouch-magic-fix')).toBeNull();
  });

  test('leaves nothing to another user if its storage is full', async () => {
    const { setItem } = Storage.prototype;
    vi.spyOn(Storage.prototype, 'setItem').mockImplementation(function (this: Storage, key, value) {
      if (this === sessionStorage) throw new DOMException('full', 'QuotaExceededError');
      setItem.call(this, key, value);
    });
    answerRenewal(() => HttpResponse.json({ error: 'invalid_grant' }, { status: 400 }));
    await storeUser(now() - 1);
    await createSession().token();
    expect(onExpired).toHaveBeenCalledOnce();
    await anotherUserSignsIn();
    expect(onUserChanged).toHaveBeenCalledOnce();
  });
});

test('a session without a refresh token that expires while the page sleeps keeps the work', async () => {
  sessionStorage.setItem('retouch-magic-fix', 'a mask');
  await storeUser(now() + 1, '');
  const session = createSession();
  vi.setSystemTime(Date.now() + 2_000);
  document.dispatchEvent(new Event('visibilitychange'));
  expect(onExpired).toHaveBeenCalledOnce();
  expect(session.state.getState()).toMatchObject({ user: null, hasSignedOut: false });
  expect(sessionStorage.getItem('retouch-magic-fix')).toBe('a mask');
});

test('another user in another tab replaces the whole page', async () => {
  await storeUser(now() + 3600);
  createSession();
  await storeUser(now() + 3600, 'other', 'user-2');
  localStorage.setItem(
    storageKey,
    (localStorage.getItem(storageKey) ?? '').replace('"access_token":"first"', '"access_token":"theirs"'),
  );
  tellOtherTabs();
  expect(onUserChanged).toHaveBeenCalledOnce();
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
