/** The database of `kept-picture.ts`. */
export const PICTURE_DATABASE = 'retouch-kept-picture';

/** Where a tab keeps its batches for a reload. */
export const STORED_BATCHES = 'retouch-batches';

const cleanups = new Set<() => void>();

/** Registers a cleanup for user data that a module keeps in memory. */
export function onSignOut(cleanup: () => void) {
  cleanups.add(cleanup);
}

/** Clears what this tab and the picture database keep of the user, except the session itself and the query cache. */
export function clearUserData() {
  for (const cleanup of cleanups) cleanup();
  try {
    // Includes modules that have not been loaded since the last reload and so cannot clean up themselves.
    for (const key of Object.keys(sessionStorage)) {
      if (key.startsWith('retouch-')) sessionStorage.removeItem(key);
    }
    indexedDB.deleteDatabase(PICTURE_DATABASE);
  } catch {
    // Storage is blocked, so it holds nothing.
  }
}
