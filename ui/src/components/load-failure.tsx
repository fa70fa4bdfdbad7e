import { Button } from './button';
import { Notice } from './notice';

type LoadFailureProps = { text: string; isTrying: boolean; onTryAgain: () => void };

/** In the place of what could not be loaded, with a way to ask once more. */
export function LoadFailure({ text, isTrying, onTryAgain }: LoadFailureProps) {
  return (
    <div className="grid justify-items-start gap-4">
      <Notice tone="error">{text}</Notice>
      <Button look="secondary" isBusy={isTrying} onClick={onTryAgain}>
        Try again
      </Button>
    </div>
  );
}
