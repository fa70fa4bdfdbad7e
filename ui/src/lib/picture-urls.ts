import type { Query, QueryClient } from '@tanstack/react-query';
import { serverNow } from './server-clock';

/** Pictures are requested again this long before their URLs expire. */
const RENEW_BEFORE_MS = 5 * 60_000;
/** The shortest time between two requests for a list whose URLs have expired. */
const MIN_INTERVAL_MS = 30_000;
/** `setTimeout` fires at once beyond 24.8 days. */
const MAX_INTERVAL_MS = 24 * 3_600_000;

/** Options of a query whose data has signed URLs: it is fetched again before they expire. */
export const renewPictures = {
  refetchInterval: ({ state }: Pick<Query, 'state'>) => {
    const expiresAt = earliestExpiry(state.data);
    if (expiresAt === null) return false as const;
    const left = expiresAt - RENEW_BEFORE_MS - serverNow();
    return Math.min(MAX_INTERVAL_MS, Math.max(MIN_INTERVAL_MS, left));
  },
  // A hidden tab may have slept past the expiry.
  refetchOnWindowFocus: ({ state }: Pick<Query, 'state'>) => {
    const expiresAt = earliestExpiry(state.data);
    return expiresAt !== null && expiresAt - RENEW_BEFORE_MS < serverNow();
  },
};

/** Returns when the first URL in `data` expires, in milliseconds since 1970. */
export function earliestExpiry(data: unknown): number | null {
  const times = Array.from(JSON.stringify(data ?? null).matchAll(/\?expires=(\d+)/g), ([, time]) =>
    Number(time),
  );
  return times.length > 0 ? Math.min(...times) * 1000 : null;
}

/** When each picture was last requested again, by path. */
const askedAt = new Map<string, number>();

/**
 * Asks the API again for a picture whose URL was refused, and returns its new URL; null if no cached data names it.
 * Requests a picture that stays broken once per interval.
 */
export async function renewPictureUrl(queryClient: QueryClient, url: string): Promise<string | null> {
  const { pathname } = new URL(url, window.location.origin);
  if (Date.now() - (askedAt.get(pathname) ?? 0) > MIN_INTERVAL_MS) {
    askedAt.set(pathname, Date.now());
    await queryClient.refetchQueries(
      { predicate: (query) => findUrl(query.state.data, pathname) !== null },
      // Many pictures of one list can break at once.
      { cancelRefetch: false },
    );
  }
  for (const query of queryClient.getQueryCache().getAll()) {
    const found = findUrl(query.state.data, pathname);
    if (found) return found;
  }
  return null;
}

function findUrl(data: unknown, pathname: string): string | null {
  const start = `"${pathname}?`;
  const text = JSON.stringify(data ?? null);
  const at = text.indexOf(start);
  return at < 0 ? null : JSON.parse(text.slice(at, text.indexOf('"', at + 1) + 1));
}
