import { t } from '@/lib/translate';
import { LoadFailure } from './load-failure';
import { Spinner } from './spinner';

/** A picture on its way to an editor. */
export type AwaitedPicture = {
  isMissing: boolean;
  hasFailed: boolean;
  isTrying: boolean;
  tryAgain: () => void;
};

/** Covers the area of pictures while one of them is missing: shows that it is loading, or offers to try again. */
export function PictureWait({ pictures }: { pictures: readonly AwaitedPicture[] }) {
  const failed = pictures.filter(({ hasFailed }) => hasFailed);
  if (failed.length > 0) {
    return (
      <div className="absolute inset-0 grid place-content-center rounded-lg bg-sunken p-4">
        <LoadFailure
          text={t('This part of the page could not be loaded.')}
          isTrying={failed.some(({ isTrying }) => isTrying)}
          onTryAgain={() => {
            for (const { tryAgain } of failed) tryAgain();
          }}
        />
      </div>
    );
  }
  if (!pictures.some(({ isMissing }) => isMissing)) return null;
  return (
    <p className="pointer-events-none absolute inset-0 m-auto size-fit rounded-full bg-surface p-2 shadow-raised">
      <Spinner />
      <span className="sr-only">{t('Loading')}</span>
    </p>
  );
}
