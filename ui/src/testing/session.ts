import type { Identity } from '@/lib/api-types';

/** Stores a signed-in user where oidc-client-ts expects one, without a refresh token unless `change` has one. */
export function storeSession({ issuer, clientId, scope }: Identity, change: object = {}) {
  localStorage.setItem(
    `oidc.user:${issuer}:${clientId}`,
    JSON.stringify({
      access_token: 'test-token',
      token_type: 'Bearer',
      scope,
      profile: { sub: 'user-1', email: 'ada@example.com', iss: issuer, aud: clientId, exp: 0, iat: 0 },
      expires_at: Math.floor(Date.now() / 1000) + 3600,
      ...change,
    }),
  );
}
