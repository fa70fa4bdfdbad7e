import { Suspense, useEffect, useRef } from 'react';
import { useBlocker } from 'react-router';
import { lazyWithRetry } from '@/components/lazy-with-retry';
import { t } from '@/lib/translate';

const loadDialog = () => import('@/components/confirm-dialog');
const ConfirmDialog = lazyWithRetry(loadDialog, null);

/** Asks before the page is left, while a touch-up would be lost. */
export default function LeaveGuard() {
  const blocker = useBlocker(
    ({ currentLocation, nextLocation }) => currentLocation.pathname !== nextLocation.pathname,
  );
  const isLeaving = useRef(false);
  useEffect(() => {
    // Loaded now: without it, nobody could leave while the connection is lost.
    void loadDialog().catch(() => {});
    const keep = (event: BeforeUnloadEvent) => event.preventDefault();
    window.addEventListener('beforeunload', keep);
    return () => window.removeEventListener('beforeunload', keep);
  }, []);

  if (blocker.state !== 'blocked') return null;
  return (
    <Suspense>
      <ConfirmDialog
        title={t('Leave without the touch-up?')}
        text={t('Your brush strokes on this cutout are not saved. To keep them, download the picture first.')}
        action={t('Leave')}
        onConfirm={() => {
          isLeaving.current = true;
          blocker.proceed();
        }}
        // Also called after a confirmation.
        onClose={() => isLeaving.current || blocker.reset()}
        onClosed={() => {}}
      />
    </Suspense>
  );
}
