import { newId } from '@/lib/new-id';

/**
 * Gives the history's entry of a page that was loaded as a whole a key of its own, before the router reads it. The
 * router calls all of them alike, and would open one where another was scrolled to. A reload keeps the key.
 */
export function nameEntry({ history } = window) {
  if (!history.state?.key) history.replaceState({ ...history.state, key: newId() }, '');
}
