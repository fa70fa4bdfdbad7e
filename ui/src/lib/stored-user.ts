import type { User } from 'oidc-client-ts';
import type { Identity } from './api-types';

/** The part of the identity client's stored user that the page needs without the client. */
export type StoredUser = Pick<User, 'access_token' | 'refresh_token' | 'expires_at' | 'profile'>;

/** The key under which the identity client stores the user, for all tabs of the browser. */
export function storedUserKey({ issuer, clientId }: Identity): string {
  return `oidc.user:${issuer}:${clientId}`;
}

/** The entry left for a user whose session has expired. Without one, other tabs would assume a sign-out. */
const EXPIRED = '{"expires_at":0}';
/** The digest of the token of the latest sign-in that the user asked for. A token that a page renewed has another one. */
const SIGN_IN_KEY = 'retouch-sign-in';
/** In the tab's storage, beside the work of this user. */
const OWNER_KEY = 'retouch-owner';

/** Returns the stored user, unless their token has expired and cannot be renewed. */
export function readStoredUser(key: string): StoredUser | null {
  const user: StoredUser | null = tryStorage(() => JSON.parse(localStorage.getItem(key) ?? 'null'));
  return user && (user.refresh_token || secondsLeft(user) > 0) ? user : null;
}

export function removeStoredUser(key: string) {
  tryStorage(() => localStorage.removeItem(key));
  forgetSignIn();
}

/** Removes the tokens of a user whose session has expired. */
export function expireStoredUser(key: string) {
  tryStorage(() => localStorage.setItem(key, EXPIRED));
  forgetSignIn();
}

/** Notes for all tabs that a token comes from a sign-in. */
export async function storeSignIn(token: string) {
  const digest = await digestOf(token);
  tryStorage(() => localStorage.setItem(SIGN_IN_KEY, digest));
}

export async function isFromSignIn(token: string): Promise<boolean> {
  const noted = tryStorage(() => localStorage.getItem(SIGN_IN_KEY));
  return noted !== null && noted === (await digestOf(token));
}

export function forgetSignIn() {
  tryStorage(() => localStorage.removeItem(SIGN_IN_KEY));
}

/** The key of `last-look.ts`, whose entry a sign-out leaves for the next sign-in. */
export const looksKey = (userId: string | null) => `retouch-looks:${userId}`;

/** Removes what a sign-out leaves of a user. Their account was deleted. */
export function forgetAccount(userId: string) {
  tryStorage(() => localStorage.removeItem(looksKey(userId)));
}

/** Whoever reads the digest of a token cannot use the token. */
async function digestOf(token: string): Promise<string> {
  const bytes = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(token));
  return String(new Uint8Array(bytes));
}

/** Returns whether a user who is no longer there has expired, rather than signed out. */
export function hasExpired(key: string): boolean {
  return tryStorage(() => localStorage.getItem(key)) !== null;
}

/** Returns the id of the user whose work this tab may have, also after their session has expired. */
export function readOwner(): string | null {
  return tryStorage(() => sessionStorage.getItem(OWNER_KEY));
}

export function storeOwner(id: string) {
  tryStorage(() => sessionStorage.setItem(OWNER_KEY, id));
}

/** Storage that is full or blocked holds nothing. */
function tryStorage<T>(use: () => T): T | null {
  try {
    return use();
  } catch {
    return null;
  }
}

/** Returns how long the user's token is valid; negative once it has expired. */
export function secondsLeft({ expires_at }: StoredUser): number {
  return expires_at === undefined ? Number.POSITIVE_INFINITY : expires_at - Date.now() / 1000;
}
