import { Button } from '@/components/button';
import { ButtonLink } from '@/components/button-link';
import { CenteredPage } from '@/components/centered-page';
import { ApiError, isProblem } from '@/lib/api-client';
import { failureText } from '@/lib/failure-text';
import { t } from '@/lib/translate';
import { imageTexts } from './texts';

type ImageNotFoundProps = {
  backTo: string;
  error: Error;
  isTrying: boolean;
  onTryAgain: () => void;
};

/** Shown for an image that does not exist or could not be loaded. */
export function ImageNotFound({ backTo, error, isTrying, onTryAgain }: ImageNotFoundProps) {
  const isGone = isProblem(error, 404);
  return (
    <CenteredPage title={t(imageTexts.notFound)}>
      <p>
        {isGone
          ? t('It may have been deleted, or it belongs to another account.')
          : error instanceof ApiError && error.detail
            ? failureText(error)
            : t('We could not reach the server. Your image is safe: we keep it until you delete it.')}
      </p>
      <div className="flex flex-wrap justify-center gap-3">
        {!isGone && (
          <Button isBusy={isTrying} onClick={onTryAgain}>
            {t('Try again')}
          </Button>
        )}
        <ButtonLink to={backTo} variant={isGone ? 'primary' : 'secondary'}>
          {t('Choose another image')}
        </ButtonLink>
      </div>
    </CenteredPage>
  );
}
