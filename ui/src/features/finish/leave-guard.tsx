import { Suspense, useEffect, useRef } from 'react';
import { useBlocker } from 'react-router';
import { lazyWithRetry } from '@/components/lazy-with-retry';
import { takePasted } from '@/lib/pasted-picture';
import { t } from '@/lib/translate';

const loadDialog = () => import('@/components/confirm-dialog');
const ConfirmDialog = lazyWithRetry(loadDialog);

/** Asks before the page is left, while a touch-up would be lost. */
export default function LeaveGuard() {
  /** The dialog has no button that opens it, to which it would return the focus. */
  const focused = useRef<Element | null>(null);
  const blocker = useBlocker(({ currentLocation, nextLocation }) => {
    focused.current = document.activeElement;
    return currentLocation.pathname !== nextLocation.pathname;
  });
  const isLeaving = useRef(false);
  useEffect(() => {
    // Loaded now: without it, nobody could leave while the connection is lost.
    void loadDialog().catch(() => {});
    const keep = (event: BeforeUnloadEvent) => event.preventDefault();
    window.addEventListener('beforeunload', keep);
    return () => window.removeEventListener('beforeunload', keep);
  }, []);

  function stay() {
    // It was pasted to leave this page for one that takes pictures, and would turn up there on a later visit.
    takePasted();
    blocker.reset?.();
  }

  function returnFocus() {
    const { current } = focused;
    if (current instanceof HTMLElement && !isLeaving.current) current.focus();
  }

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
        onClose={() => isLeaving.current || stay()}
        onClosed={returnFocus}
      />
    </Suspense>
  );
}
