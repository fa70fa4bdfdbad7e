import { type RefObject, useEffect, useEffectEvent } from 'react';

/** Distance from the window at which an element counts as in view. */
const MARGIN = '600px';

/** Calls `onInView` when the element comes near the window, and again if it still is when `version` changes. */
export function useInView(ref: RefObject<Element | null>, version: number, onInView: () => void) {
  const enter = useEffectEvent(onInView);
  // biome-ignore lint/correctness/useExhaustiveDependencies: a new observer reports again.
  useEffect(() => {
    const element = ref.current;
    if (!element || !('IntersectionObserver' in window)) return;
    const observer = new IntersectionObserver(
      (entries) => entries.some(({ isIntersecting }) => isIntersecting) && enter(),
      { rootMargin: MARGIN },
    );
    observer.observe(element);
    return () => observer.disconnect();
  }, [ref, version]);
}
