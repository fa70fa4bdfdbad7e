import { Suspense, useEffect } from 'react';
import { lazyWithRetry } from '@/components/lazy-with-retry';
import { prefetch } from '@/lib/load-with-retry';
import { loadToasts, useToasts } from '@/lib/notify';

const Container = lazyWithRetry(async () => {
  const { ToastContainer } = await loadToasts();
  return { default: ToastContainer };
}, null);

/** Relies on the library's defaults: top right, 5 s, Alt+T. */
export function Toasts() {
  const isNeeded = useToasts((state) => state.isNeeded);

  // Loads the library on the first interaction: it could not be loaded to report a lost connection.
  useEffect(() => {
    const load = prefetch(loadToasts);
    window.addEventListener('pointerdown', load, { once: true });
    window.addEventListener('keydown', load, { once: true });
    return () => {
      window.removeEventListener('pointerdown', load);
      window.removeEventListener('keydown', load);
    };
  }, []);

  return (
    isNeeded && (
      <Suspense>
        <Container />
      </Suspense>
    )
  );
}
