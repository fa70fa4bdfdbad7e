import { useEffect, useEffectEvent } from 'react';

/** Calls `onEscape` for the Escape key, except where the key closes something else. */
export function useEscape(isActive: boolean, onEscape: () => void) {
  const handle = useEffectEvent((event: KeyboardEvent) => {
    const isElsewhere = event.target instanceof Element && event.target.closest('[role$=dialog], select');
    if (event.key === 'Escape' && !event.defaultPrevented && !isElsewhere) onEscape();
  });
  useEffect(() => {
    if (!isActive) return;
    const handleKey = (event: KeyboardEvent) => handle(event);
    window.addEventListener('keydown', handleKey);
    return () => window.removeEventListener('keydown', handleKey);
  }, [isActive]);
}
