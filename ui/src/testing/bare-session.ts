import { HttpResponse, http } from 'msw';
import { User } from 'oidc-client-ts';
import { afterEach, beforeEach, vi } from 'vitest';
import { IdentityClient } from '@/lib/identity-client';
import { Session } from '@/lib/session';
import { aConfig } from './builders';
import { server } from './server';

export const { identity } = aConfig();
export const onExpired = vi.fn();
export const onSignedOut = vi.fn();
export const onUserChanged = vi.fn();
const sessions: Session[] = [];

/** Creates a session as a tab does. */
export function createSession() {
  const session = new Session(identity, { onExpired, onSignedOut, onUserChanged });
  sessions.push(session);
  return session;
}

export const storageKey = `oidc.user:${identity.issuer}:${identity.clientId}`;
/** Notifies this tab as the browser would notify every other tab. */
export const tellOtherTabs = () => window.dispatchEvent(new StorageEvent('storage', { key: storageKey }));
export const now = () => Math.floor(Date.now() / 1000);

/** Stores a user as the identity client does after a sign-in. */
export async function storeUser(
  expiresAt: number,
  refreshToken: string | undefined = 'refresh',
  sub = 'user-1',
) {
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
export function answerRenewal(answer: () => Response | Promise<Response>) {
  server.use(
    http.get(`${identity.issuer}/.well-known/openid-configuration`, () =>
      HttpResponse.json({ issuer: identity.issuer, token_endpoint: `${identity.issuer}/token` }),
    ),
    http.post(`${identity.issuer}/token`, answer),
  );
}

/** Gives each test of a file a clock of its own, and ends its sessions. */
export function prepareSessions() {
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
}
