import type { Image } from '@/lib/api-types';
import { STORED_BATCHES } from '@/lib/sign-out-cleanup';
import { useBatches } from './batch-store';

// Items that the server knows survive a reload of the tab; of unsent files, at most the names do. Writes are delayed,
// because each of them serializes the whole batch, and flushed when the user leaves the page. A page that shows no batch
// does not load this.

const WRITE_DELAY_MS = 250;

let writing: ReturnType<typeof setTimeout> | undefined;
useBatches.subscribe(() => {
  writing ??= setTimeout(write, WRITE_DELAY_MS);
});

const flush = () => writing !== undefined && write();
window.addEventListener('pagehide', flush);
// A phone may stop a hidden page at once, and never show it again.
document.addEventListener('visibilitychange', flush);

function write() {
  clearTimeout(writing);
  writing = undefined;
  try {
    const stored = JSON.stringify(useBatches.getState(), storedValue);
    if (stored === '{}') sessionStorage.removeItem(STORED_BATCHES);
    else sessionStorage.setItem(STORED_BATCHES, stored);
  } catch {
    // Storage is full or blocked: the batch lasts as long as the page.
  }
}

/** Leaves out files, and the pictures of images and results: after a reload, the job knows them. */
function storedValue(name: string, value: unknown) {
  if (name === 'file' || name === 'previewUrl') return null;
  if (name === 'image') return value && { id: (value as Image).id };
  return name === 'result' ? undefined : value;
}
