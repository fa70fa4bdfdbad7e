import { Suspense, useEffect } from 'react';
import { lazyWithRetry } from '@/components/lazy-with-retry';
import { isUnfinished, useUploads } from './uploads';

const loadList = () => import('./uploads-list');
const UploadsList = lazyWithRetry(loadList, null);

/** The uploads that no page shows: uploads of pages that the user has left, and the queue. The shell has it on every
 * page. */
export function UploadsNotice() {
  const { uploads } = useUploads();
  const hasUnsent = uploads.some(isUnfinished);

  useEffect(() => {
    if (!hasUnsent) return;
    // Loaded now: it could not be loaded to report a lost connection.
    void loadList().catch(() => {});
    const keep = (event: BeforeUnloadEvent) => event.preventDefault();
    window.addEventListener('beforeunload', keep);
    return () => window.removeEventListener('beforeunload', keep);
  }, [hasUnsent]);

  const left = uploads.filter(({ isAttended }) => !isAttended);
  if (left.length === 0) return null;
  return (
    <Suspense>
      <UploadsList uploads={left} />
    </Suspense>
  );
}
