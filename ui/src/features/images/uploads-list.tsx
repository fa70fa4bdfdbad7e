import { useQueryClient } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { useEffect, useRef } from 'react';
import { Link } from 'react-router';
import { Button } from '@/components/button';
import { Icon } from '@/components/icon';
import { IconButton } from '@/components/icon-button';
import { ProgressBar } from '@/components/progress-bar';
import { classNames } from '@/lib/class-names';
import { failureText } from '@/lib/failure-text';
import { rich } from '@/lib/rich';
import { t } from '@/lib/translate';
import { retryUpload } from './upload-queue';
import { isUnfinished, removeUpload, type Upload } from './uploads';

/** The state of each upload, and of all of them if there are several. */
export default function UploadsList({ uploads }: { uploads: Upload[] }) {
  const box = useRef<HTMLDivElement>(null);
  const isOne = uploads.length === 1;

  // The button that was pressed has gone with its upload.
  const count = uploads.length;
  const shown = useRef(count);
  useEffect(() => {
    if (count < shown.current && document.activeElement === document.body) box.current?.focus();
    shown.current = count;
  }, [count]);

  return (
    <div
      ref={box}
      tabIndex={-1}
      className="fixed bottom-(--floor) left-4 z-40 grid w-80 max-w-[calc(100%-2rem)] gap-3 rounded-md border border-line bg-surface p-4 text-sm shadow-overlay outline-none"
    >
      {!isOne && <Summary uploads={uploads} />}
      <ul aria-label={t('Uploads')} className="-m-1 grid max-h-[min(40dvh,20rem)] gap-3 overflow-y-auto p-1">
        {uploads.toSorted(failedFirst).map((upload) => (
          <li key={upload.id} className="grid gap-2">
            <UploadRow upload={upload} isOne={isOne} />
          </li>
        ))}
      </ul>
    </div>
  );
}

function Summary({ uploads }: { uploads: Upload[] }) {
  const queryClient = useQueryClient();
  const failed = uploads.filter(({ state }) => state.kind === 'failed');
  const retryable = failed.filter(({ state }) => state.kind === 'failed' && state.canRetry);
  const done = uploads.filter(({ state }) => state.kind === 'done').length;
  const isBusy = uploads.some(isUnfinished);
  return (
    <div className="grid gap-2">
      <div className="flex flex-wrap items-center gap-x-2">
        <p role="status" className="grow font-semibold tabular-nums">
          {failed.length > 0
            ? t('{done} of {total} uploaded, {failed} failed', {
                done,
                total: uploads.length,
                failed: failed.length,
              })
            : t('{done} of {total} uploaded', { done, total: uploads.length })}
        </p>
        {retryable.length > 1 && (
          <Button
            variant="secondary"
            size="sm"
            onClick={() => {
              for (const { id } of retryable) retryUpload(queryClient, id);
            }}
          >
            {t('Retry all')}
          </Button>
        )}
        <Button
          variant="quiet"
          size="sm"
          onClick={() => {
            for (const { id } of uploads) removeUpload(id);
          }}
        >
          {isBusy ? t('Cancel all') : t('Close')}
        </Button>
      </div>
      {isBusy && (
        <ProgressBar label={t('All uploads')} fraction={sum(uploads.map(fractionOf)) / uploads.length} />
      )}
    </div>
  );
}

function UploadRow({ upload, isOne }: { upload: Upload; isOne: boolean }) {
  const queryClient = useQueryClient();
  const { id, file, prefix, state } = upload;
  const { name } = file;
  const close = () => removeUpload(id);
  return (
    <>
      <div className={classNames('grid gap-x-2', !isOne && 'grid-cols-[1fr_auto] items-center')}>
        <div className="min-w-0">
          {/* Alone, the upload says itself what happens; of several, only the summary is read out. */}
          <p role={isOne ? 'status' : undefined} className="wrap-anywhere">
            {stateText(upload, <span className="font-semibold">{name}</span>)}
          </p>
          {state.kind === 'failed' && <p className="text-danger">{failureText(state.error)}</p>}
        </div>
        <div className="flex items-center justify-end gap-1">
          {state.kind === 'done' && (
            <Link
              to={`${prefix}/${state.image.id}`}
              className="inline-flex min-h-9 thumb:min-h-11 items-center font-semibold text-accent underline underline-offset-4"
              aria-label={isOne ? undefined : t('Show it: {name}', { name })}
              onClick={close}
            >
              {t('Show it')}
            </Link>
          )}
          {state.kind === 'failed' && state.canRetry && (
            <Button
              variant="secondary"
              size="sm"
              aria-label={isOne ? undefined : t('Retry {name}', { name })}
              onClick={() => retryUpload(queryClient, id)}
            >
              {t('Retry')}
            </Button>
          )}
          {isOne && (
            <Button variant="quiet" size="sm" onClick={close}>
              {isUnfinished(upload) ? t('Cancel') : t('Close')}
            </Button>
          )}
          {!isOne && state.kind !== 'done' && (
            <IconButton
              label={isUnfinished(upload) ? t('Cancel {name}', { name }) : t('Close {name}', { name })}
              onClick={close}
            >
              <Icon name="close" />
            </IconButton>
          )}
        </div>
      </div>
      {state.kind === 'sending' && (
        <ProgressBar
          label={t('Upload of {name}', { name })}
          fraction={state.fraction < 1 ? state.fraction : null}
        />
      )}
    </>
  );
}

function stateText({ state }: Upload, name: ReactNode): ReactNode {
  switch (state.kind) {
    case 'waiting':
      return rich('{name} is waiting', { name });
    case 'paused':
      return state.cause === 'server'
        ? rich('{name} waits, because the server is busy. This continues automatically.', { name })
        : rich('{name} waits for the network. This continues automatically.', { name });
    case 'sending':
      return rich('{name} is being uploaded', { name });
    case 'done':
      return rich('{name} is uploaded', { name });
    case 'failed':
      return rich('{name}: Failed to upload image', { name });
  }
}

function fractionOf({ state }: Upload): number {
  if (state.kind === 'sending') return state.fraction;
  return state.kind === 'waiting' || state.kind === 'paused' ? 0 : 1;
}

/** Of many uploads, only the first few are in sight. */
const failedFirst = (a: Upload, b: Upload) => Number(hasFailed(b)) - Number(hasFailed(a));
const hasFailed = ({ state }: Upload) => state.kind === 'failed';

const sum = (values: number[]) => values.reduce((total, value) => total + value, 0);
