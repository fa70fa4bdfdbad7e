import { useEffect, useEffectEvent } from 'react';
import { PICTURE_KEPT, takePicture } from './kept-picture';

/**
 * Passes on a picture that was kept for this page: the one chosen before signing up, or one pasted on another page.
 * Null while no picture can be taken.
 */
export function useKeptPicture(choose: ((file: File) => void) | null) {
  const take = useEffectEvent(async () => {
    const file = choose && (await takePicture());
    if (file) choose(file);
  });
  useEffect(() => {
    const takeKept = () => void take();
    takeKept();
    window.addEventListener(PICTURE_KEPT, takeKept);
    return () => window.removeEventListener(PICTURE_KEPT, takeKept);
  }, []);
}
