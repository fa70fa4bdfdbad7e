import type { User } from 'oidc-client-ts';
import type { Identity } from './api-types';

/** The part of the identity client's stored user that the page needs without the client. */
export type StoredUser = Pick<User, 'access_token' | 'refresh_token' | 'expires_at' | 'profile'>;

/** The key under which the identity client stores the user, for all tabs of the browser. */
export function storedUserKey({ issuer, clientId }: Identity): string {
  return `oidc.user:${issuer}:${clientId}`;
}

/** Returns the stored user, unless their token has expired for good. */
export function readStoredUser(key: string): StoredUser | null {
  try {
    const user: StoredUser | null = JSON.parse(localStorage.getItem(key) ?? 'null');
    return user && (user.refresh_token || secondsLeft(user) > 0) ? user : null;
  } catch {
    return null;
  }
}

export function removeStoredUser(key: string) {
  try {
    localStorage.removeItem(key);
  } catch {
    // Storage is blocked, so it holds nothing.
  }
}

/** Returns how long the user's token is valid; negative once it has expired. */
export function secondsLeft({ expires_at }: StoredUser): number {
  return expires_at === undefined ? Number.POSITIVE_INFINITY : expires_at - Date.now() / 1000;
}
