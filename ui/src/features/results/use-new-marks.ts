import { useEffect, useEffectEvent, useState } from 'react';
import type { Result, ResultItem } from '@/lib/api-types';
import { useSession } from '@/lib/session';
import { lastLook, recordLook } from './last-look';

/**
 * Marks the results that were made since this person last looked at the list. A look ends when the page is left or
 * hidden, or when a newer result arrives.
 */
export function useNewMarks(list: string, results: Result[] | undefined): ResultItem[] | undefined {
  const { userId } = useSession();
  const [seen, setSeen] = useState(() => lastLook(userId, list));
  const [shown, setShown] = useState<string | undefined>();

  const newest = results?.reduce<string | undefined>(
    (latest, { createdAt }) => (latest && latest > createdAt ? latest : createdAt),
    undefined,
  );
  // State that follows from a change of the results is set while rendering, so that no frame shows an old mark.
  if (newest !== shown && document.visibilityState === 'visible') {
    if (shown && newest && newest > shown) setSeen(shown);
    setShown(newest);
  }

  const endLook = useEffectEvent(() => {
    if (shown) recordLook(userId, list, shown);
  });
  useEffect(() => {
    const onHide = () => document.visibilityState === 'hidden' && endLook();
    document.addEventListener('visibilitychange', onHide);
    // A page that is reloaded or closed does not unmount.
    const onLeave = () => endLook();
    window.addEventListener('pagehide', onLeave);
    return () => {
      document.removeEventListener('visibilitychange', onHide);
      window.removeEventListener('pagehide', onLeave);
      endLook();
    };
  }, []);

  return results?.map((result) => ({ ...result, isNew: result.createdAt > seen }));
}
