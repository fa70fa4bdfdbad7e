import { passFocus } from '@/lib/pass-focus';
import { t } from '@/lib/translate';
import { Button } from './button';
import { Notice } from './notice';

type LoadFailureProps = { text: string; isTrying: boolean; onTryAgain: () => void };

/** Replaces content that failed to load, with a retry button. */
export function LoadFailure({ text, isTrying, onTryAgain }: LoadFailureProps) {
  return (
    <div ref={passFocus} className="grid justify-items-start gap-4">
      <Notice tone="error">{text}</Notice>
      <Button variant="secondary" isBusy={isTrying} onClick={onTryAgain}>
        {t('Try again')}
      </Button>
    </div>
  );
}
