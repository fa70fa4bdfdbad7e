import { serverNow } from '@/lib/server-clock';
import { looksKey } from '@/lib/stored-user';

/** When a person last looked at lists of results, in this browser. Times are the server's, as text. */
type Looks = {
  /** When this browser first showed this person any results. */
  since: string;
  /** The newest seen result of each list. The most recently seen list is last. */
  lists: Record<string, string>;
};

const MAX_LISTS = 500;

/** Returns the time of the newest result that the person has seen in a list. */
export function lastLook(userId: string | null, list: string): string {
  return lookAt(read(userId) ?? start(userId), list);
}

/** Records the newest result that the person has seen in a list, unless their account was deleted meanwhile. */
export function recordLook(userId: string | null, list: string, newest: string) {
  const looks = read(userId);
  if (!looks || newest <= lookAt(looks, list)) return;
  const { since, lists } = looks;
  const { [list]: _, ...others } = lists;
  const kept = Object.entries(others).slice(1 - MAX_LISTS);
  write(userId, { since, lists: { ...Object.fromEntries(kept), [list]: newest } });
}

const lookAt = ({ since, lists }: Looks, list: string) => lists[list] ?? since;

function read(userId: string | null): Looks | null {
  try {
    return JSON.parse(localStorage.getItem(looksKey(userId)) ?? 'null');
  } catch {
    // Storage is blocked: only results made on this page are new.
    return null;
  }
}

function start(userId: string | null): Looks {
  const first: Looks = { since: new Date(serverNow()).toISOString(), lists: {} };
  write(userId, first);
  return first;
}

function write(userId: string | null, looks: Looks) {
  try {
    localStorage.setItem(looksKey(userId), JSON.stringify(looks));
  } catch {
    // Storage is full or blocked.
  }
}
