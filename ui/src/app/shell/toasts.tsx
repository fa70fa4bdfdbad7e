import { lazy, Suspense, useEffect } from 'react';
import { loadToasts, useToasts } from '@/lib/notify';

const Container = lazy(async () => {
  const { ToastContainer } = await loadToasts();
  return { default: ToastContainer };
});

/** The library's defaults (top right, 5 s, Alt+T) are the product's. */
export function Toasts() {
  const areNeeded = useToasts((state) => state.areNeeded);

  // The first touch of the page fetches them: a lost connection could not be told of otherwise.
  useEffect(() => {
    const load = () => void loadToasts().catch(() => {});
    window.addEventListener('pointerdown', load, { once: true });
    window.addEventListener('keydown', load, { once: true });
    return () => {
      window.removeEventListener('pointerdown', load);
      window.removeEventListener('keydown', load);
    };
  }, []);

  return (
    areNeeded && (
      <Suspense>
        <Container />
      </Suspense>
    )
  );
}
