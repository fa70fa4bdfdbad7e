import { expect, test, vi } from 'vitest';
import type { Batch } from './batch-store';

test('a page that loads again finds the batches that were started', async () => {
  const item = { id: '1', name: 'a.jpg', image: { id: 'i' }, jobId: 'j', state: { kind: 'running' } };
  const batch = { owner: null, action: 'remove', hasStarted: true, items: [item] };
  sessionStorage.setItem('retouch-batches', JSON.stringify({ 'remove-background': batch }));
  // The store reads them while its module is evaluated.
  vi.resetModules();
  const { useBatches } = await import('./batch-store');
  const restored: Batch | undefined = useBatches.getState()['remove-background'];
  expect(restored?.items.map(({ state }) => state.kind)).toEqual(['queued']);
});
