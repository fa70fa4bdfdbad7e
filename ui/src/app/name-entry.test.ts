import { createBrowserRouter } from 'react-router';
import { beforeEach, expect, test } from 'vitest';
import { nameEntry } from './name-entry';

/** What the router will keep the place of the page by. */
function keyOf() {
  const router = createBrowserRouter([{ path: '*', element: null }]);
  router.dispose();
  return router.state.location.key;
}

beforeEach(() => window.history.replaceState(null, '', '/'));

test('two pages that were loaded as a whole are scrolled apart from one another', () => {
  nameEntry();
  const first = keyOf();
  window.history.replaceState(null, '', '/terms');
  nameEntry();
  expect(keyOf()).not.toBe(first);
  expect(first).not.toBe('default');
});

test('a reload finds the page where it was', () => {
  nameEntry();
  const first = keyOf();
  nameEntry();
  expect(keyOf()).toBe(first);
});
