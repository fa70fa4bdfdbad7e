import { create } from 'zustand';
import { fetchPage } from './api-client';

const RETRY_AFTER_MS = [300, 1_500];

/** Whether the server has a different build of the page than this one. */
export const useBuild = create<{ isOutdated: boolean }>(() => ({ isOutdated: false }));

/** Loads code, and tries again after passing faults. If it stays missing, finds out whether the page was updated. */
export async function loadWithRetry<T>(load: () => Promise<T>): Promise<T> {
  for (const delay of RETRY_AFTER_MS) {
    try {
      return await load();
    } catch {
      await new Promise((resolve) => setTimeout(resolve, delay));
    }
  }
  try {
    return await load();
  } catch (error) {
    void checkBuild();
    throw error;
  }
}

/** Returns a handler that loads code ahead of a click, which loads it again if this fails. */
export function prefetch(load: () => Promise<unknown>): () => void {
  return () => void load().catch(() => {});
}

/** Compares the scripts of this page with those that the server would send now. */
async function checkBuild() {
  const script = document.querySelector<HTMLScriptElement>('script[type=module][src]');
  if (!script) return;
  try {
    const { pathname } = new URL(script.src);
    if (!(await fetchPage()).includes(pathname)) useBuild.setState({ isOutdated: true });
  } catch {
    // No network: the part that failed offers to try again.
  }
}
