import { useEffect, useEffectEvent } from 'react';
import { takePicture } from './kept-picture';
import { notifyInfo } from './notify';
import { PICTURE_PASTED, takePasted } from './pasted-picture';
import { t } from './translate';

/**
 * Passes on a picture that was kept for this page: the one chosen before signing up, or one pasted on another page.
 * Null while no picture can be taken: the first one waits, the other one is refused at once.
 */
export function useKeptPicture(choose: ((file: File) => void) | null) {
  const takeKept = useEffectEvent(async () => {
    const file = choose && (await takePicture());
    if (file) choose(file);
  });
  const answerPaste = useEffectEvent(() => {
    const file = takePasted();
    if (!file) return;
    if (choose) choose(file);
    else notifyInfo(t('This page can’t take another image now'));
  });
  useEffect(() => {
    void takeKept();
    const answer = () => answerPaste();
    answer();
    window.addEventListener(PICTURE_PASTED, answer);
    return () => window.removeEventListener(PICTURE_PASTED, answer);
  }, []);
}
