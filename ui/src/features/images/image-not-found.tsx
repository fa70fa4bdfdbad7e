import { Button } from '@/components/button';
import { ButtonLink } from '@/components/button-link';
import { CenteredPage } from '@/components/centered-page';
import { isProblem } from '@/lib/api-client';
import { imageTexts } from './texts';

type ImageNotFoundProps = {
  backTo: string;
  error: Error;
  isTrying: boolean;
  onTryAgain: () => void;
};

/** In place of an image that is not there, or of which nobody can tell at the moment. */
export function ImageNotFound({ backTo, error, isTrying, onTryAgain }: ImageNotFoundProps) {
  const isGone = isProblem(error, 404);
  return (
    <CenteredPage title={imageTexts.notFound}>
      <p>
        {isGone
          ? 'It may have been deleted, or it belongs to another account.'
          : 'The server could not be asked. That says nothing about your image: it is kept until you delete it.'}
      </p>
      <div className="flex flex-wrap justify-center gap-3">
        {!isGone && (
          <Button isBusy={isTrying} onClick={onTryAgain}>
            Try again
          </Button>
        )}
        <ButtonLink to={backTo} look={isGone ? 'primary' : 'secondary'}>
          Choose another image
        </ButtonLink>
      </div>
    </CenteredPage>
  );
}
