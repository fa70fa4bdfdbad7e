import type { UserManager } from 'oidc-client-ts';
import { expireStoredUser, readStoredUser, type StoredUser } from './stored-user';

/** A tab in another process sees a write to the storage a moment after it was made. */
const WRITE_SECONDS = 0.1;

/**
 * Exchanges the stored refresh token for new tokens and returns the new user, or null if the user has signed out.
 * A refresh token works once, so all tabs take turns, and a tab that had to wait uses the tokens that the other one
 * got.
 */
export function renewUser(
  key: string,
  stale: StoredUser,
  loadClient: () => Promise<UserManager>,
): Promise<StoredUser | null> {
  return new Promise((resolve, reject) => {
    takeTurns(`retouch-renewal:${key}`, async () => {
      const stored = readStoredUser(key);
      if (stored?.access_token !== stale.access_token) return resolve(stored);
      try {
        resolve(await (await loadClient()).signinSilent());
      } catch (error) {
        // Before the next tab has its turn, which would find nothing to renew.
        const isStale = readStoredUser(key)?.access_token === stale.access_token;
        if (isRefusal(error) && isStale) expireStoredUser(key);
        reject(error);
      }
      await new Promise((written) => setTimeout(written, WRITE_SECONDS * 1000));
    }).catch(reject);
  });
}

/** Returns whether the provider has refused to renew the token. Anything else, such as a lost connection, is temporary. */
export function isRefusal(error: unknown): boolean {
  return (
    error instanceof Error &&
    error.name === 'ErrorResponse' &&
    'error' in error &&
    !passingErrors.includes(String(error.error))
  );
}

const passingErrors = ['server_error', 'temporarily_unavailable', 'slow_down'];

async function takeTurns(name: string, work: () => Promise<void>) {
  // Only missing where no sign-in works either: on a page that is not served securely.
  await (navigator.locks ? navigator.locks.request(name, work) : work());
}
