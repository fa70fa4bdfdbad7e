import { useEffect, useEffectEvent, useRef } from 'react';
import { Button } from '@/components/button';
import { FileDrop } from '@/components/file-drop';
import { LoadFailure } from '@/components/load-failure';
import { Notice } from '@/components/notice';
import { ProgressBar } from '@/components/progress-bar';
import { Skeleton } from '@/components/skeleton';
import { Spinner } from '@/components/spinner';
import { useIncomingFiles } from '@/components/use-incoming-files';
import { useConfig } from '@/lib/env';
import { failureText, UserError } from '@/lib/failure-text';
import { formatBytes } from '@/lib/format';
import { pictureTypes } from '@/lib/picture-kind';
import { t } from '@/lib/translate';
import { CheckedPictureView } from './checked-picture-view';
import { ReportView } from './report-view';
import { type LinkedPicture, useVerification } from './use-verification';
import { verdictOf } from './verdict';

// Marks are read without a decoder.
const types = pictureTypes({ heic: true, avif: true });

type VerifyPanelProps = {
  /** A picture to check at once. */
  linked: LinkedPicture | null;
};

/** Takes a picture and shows its marks. The next picture replaces it. */
export function VerifyPanel({ linked }: VerifyPanelProps) {
  const { maxUploadBytes } = useConfig().limits;
  const { picture, sent, isBusy, error, report, check, tryAgain } = useVerification();
  const input = useRef<HTMLInputElement>(null);
  const outcome = useRef<HTMLElement>(null);
  const accept = useIncomingFiles({ onFile: check });

  const checkLinked = useEffectEvent(() => linked && check(linked));
  useEffect(() => void checkLinked(), []);

  // The button that chose the first picture disappears with its panel.
  const hasPicture = picture !== null;
  useEffect(() => {
    if (hasPicture) outcome.current?.focus({ preventScroll: true });
  }, [hasPicture]);

  const failure =
    error &&
    (error instanceof UserError ? (
      <Notice tone="error">{failureText(error)}</Notice>
    ) : (
      <LoadFailure text={failureText(error)} isTrying={false} onTryAgain={tryAgain} />
    ));

  return (
    <>
      <p aria-live="polite" className="sr-only">
        {report && t(verdictOf(report).title)}
      </p>
      {!picture ? (
        <div className="grid gap-4">
          {failure}
          {isBusy ? (
            <Skeleton className="h-72 rounded-lg" />
          ) : (
            <FileDrop
              hint={t('JPG, PNG, WebP, HEIC or AVIF, up to {bytes}', { bytes: formatBytes(maxUploadBytes) })}
              types={types}
              onFiles={accept}
            />
          )}
        </div>
      ) : (
        <div className="grid items-start gap-6 md:grid-cols-[15rem_1fr] lg:grid-cols-[20rem_1fr] lg:gap-8">
          <div className="grid min-w-0 gap-4 md:sticky md:top-24">
            <CheckedPictureView picture={picture} />
            <input
              ref={input}
              type="file"
              accept={types}
              aria-label={t('Image file')}
              hidden
              onChange={({ target }) => {
                accept(target.files);
                // Lets the user choose the same file again.
                target.value = '';
              }}
            />
            <Button variant="secondary" onClick={() => input.current?.click()}>
              {t('Choose another image')}
            </Button>
          </div>
          <section ref={outcome} tabIndex={-1} aria-label={t('Result')} className="min-w-0 outline-none">
            {isBusy ? (
              <div className="grid gap-4 rounded-lg border border-line bg-surface p-4 md:p-6">
                <p className="flex items-center gap-3 font-semibold">
                  <Spinner label={t('Reading the picture…')} />
                </p>
                <ProgressBar label={t('Upload')} fraction={sent < 1 ? sent : null} />
              </div>
            ) : report ? (
              <ReportView report={report} />
            ) : (
              failure
            )}
          </section>
        </div>
      )}
    </>
  );
}
