import { delay, HttpResponse, http } from 'msw';
import { type User, UserManager } from 'oidc-client-ts';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import {
  answerRenewal,
  createSession,
  identity,
  now,
  onExpired,
  onSignedOut,
  onUserChanged,
  prepareSessions,
  storageKey,
  storeUser,
  tellOtherTabs,
} from '@/testing/bare-session';
import { aLockManager } from '@/testing/lock-manager';
import { server } from '@/testing/server';
import { api } from './api-client';
import { IdentityClient } from './identity-client';
import { storeSignIn } from './stored-user';

prepareSessions();

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
