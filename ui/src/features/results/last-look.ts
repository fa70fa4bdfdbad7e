import { serverNow } from '@/lib/server-clock';

/** When a person last looked at lists of results, in this browser. Times are the server's, as text. */
type Looks = {
  /** When this browser first showed this person any results. */
  since: string;
  /** The newest seen result of each list. The most recently seen list is last. */
  lists: Record<string, string>;
};

const MAX_LISTS = 500;
const keyOf = (userId: string | null) => `retouch-looks:${userId}`;

/** Returns the time of the newest result that the person has seen in a list. */
export function lastLook(userId: string | null, list: string): string {
  const { since, lists } = read(userId);
  return lists[list] ?? since;
}

export function recordLook(userId: string | null, list: string, newest: string) {
  const { since, lists } = read(userId);
  const { [list]: _, ...others } = lists;
  const kept = Object.entries(others).slice(1 - MAX_LISTS);
  write(userId, { since, lists: { ...Object.fromEntries(kept), [list]: newest } });
}

function read(userId: string | null): Looks {
  try {
    const stored: Looks | null = JSON.parse(localStorage.getItem(keyOf(userId)) ?? 'null');
    if (stored) return stored;
  } catch {
    // Storage is blocked: only results made on this page are new.
  }
  const first: Looks = { since: new Date(serverNow()).toISOString(), lists: {} };
  write(userId, first);
  return first;
}

function write(userId: string | null, looks: Looks) {
  try {
    localStorage.setItem(keyOf(userId), JSON.stringify(looks));
  } catch {
    // Storage is full or blocked.
  }
}
