import { create } from 'zustand';
import { fetchPage } from './api-client';

type Load = () => Promise<unknown>;

const RETRY_AFTER_MS = [300, 1_500];

/** Why the page has to be reloaded: the server has another build of it, or the code of `missing` stays missing. */
export const useReload = create<{ isOutdated: boolean; missing: Load | null }>(() => ({
  isOutdated: false,
  missing: null,
}));

/**
 * Loads code, and tries again after passing faults. If it stays missing although the server answers, the page asks for a
 * reload: many browsers, such as Firefox 153, never request code again that failed once (whatwg/html#6768). Code that
 * can be missing asks only after an update of the server: a blocker may keep it away on every visit.
 */
export async function loadWithRetry<T>(load: () => Promise<T>, { canBeMissing = false } = {}): Promise<T> {
  for (const delay of RETRY_AFTER_MS) {
    try {
      return await loadOnce(load);
    } catch {
      await new Promise((resolve) => setTimeout(resolve, delay));
    }
  }
  try {
    return await loadOnce(load);
  } catch (error) {
    void checkBuild(load, canBeMissing);
    throw error;
  }
}

/** Returns a handler that loads code ahead of a click, which loads it again if this fails. */
export function prefetch(load: Load): () => void {
  return () => {
    // A failure would spoil the click, too.
    if (navigator.onLine) load().catch(() => {});
  };
}

async function loadOnce<T>(load: () => Promise<T>): Promise<T> {
  const code = await load();
  if (useReload.getState().missing === load) useReload.setState({ missing: null });
  return code;
}

/** Compares the scripts of this page with those that the server would send now. */
async function checkBuild(load: Load, canBeMissing: boolean) {
  const script = document.querySelector<HTMLScriptElement>('script[type=module][src]');
  if (!script) return;
  try {
    const { pathname } = new URL(script.src);
    if (!(await fetchPage()).includes(pathname)) return useReload.setState({ isOutdated: true });
  } catch {
    // No network: the part that failed offers to try again.
    return;
  }
  if (canBeMissing) return;
  // By now, the code may be there.
  await load().catch(() => useReload.setState({ missing: load }));
}
