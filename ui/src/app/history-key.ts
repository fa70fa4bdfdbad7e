import { newId } from '@/lib/new-id';

/**
 * Gives the current history entry a unique key before the router reads it. The router uses one key for every full page
 * load, and would restore the scroll position of another page. A reload keeps the key.
 */
export function ensureHistoryKey({ history } = window) {
  if (!history.state?.key) history.replaceState({ ...history.state, key: newId() }, '');
}
