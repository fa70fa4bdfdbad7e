import { createBrowserRouter } from 'react-router';
import { beforeEach, expect, test } from 'vitest';
import { ensureHistoryKey } from './history-key';

/** The key under which the router stores the scroll position. */
function routerKey() {
  const router = createBrowserRouter([{ path: '*', element: null }]);
  router.dispose();
  return router.state.location.key;
}

beforeEach(() => window.history.replaceState(null, '', '/'));

test('two fully loaded pages have separate scroll positions', () => {
  ensureHistoryKey();
  const first = routerKey();
  window.history.replaceState(null, '', '/terms');
  ensureHistoryKey();
  expect(routerKey()).not.toBe(first);
  expect(first).not.toBe('default');
});

test('a reload keeps the scroll position', () => {
  ensureHistoryKey();
  const first = routerKey();
  ensureHistoryKey();
  expect(routerKey()).toBe(first);
});
