import { useMutation } from '@tanstack/react-query';
import { useRef, useState } from 'react';
import { Button } from '@/components/button';
import { Icon } from '@/components/icon';
import NotEnoughCredits from '@/components/not-enough-credits';
import { ProgressBar } from '@/components/progress-bar';
import { loadWithRetry, prefetch } from '@/lib/load-with-retry';
import { notifyError } from '@/lib/notify';
import { passFocus } from '@/lib/pass-focus';
import { formatNumber, plural, t } from '@/lib/translate';
import { type Batch, type BatchItem, canRetry, isFinished, isUnsent } from './batch-store';
import { batchSummary } from './batch-summary';
import { resultNames } from './file-names';

const loadZip = () => import('./zip');

type BatchProgressProps = {
  batch: Batch;
  /** Whether the credits do not cover another run. */
  isShort: boolean;
  zipName: string;
  onCancelAll: () => Promise<void>;
  onRetryAll: () => void;
  onClose: () => void;
};

/** The progress of the whole batch, and the actions on it. */
export function BatchProgress(props: BatchProgressProps) {
  const { batch, isShort, zipName, onCancelAll, onRetryAll, onClose } = props;
  const { items } = batch;
  const accepted = items.filter(({ state }) => state.kind !== 'rejected');
  const count = (kind: BatchItem['state']['kind']) =>
    accepted.filter(({ state }) => state.kind === kind).length;
  const isAllFinished = accepted.every(isFinished);
  const retryable = items.filter(canRetry).length;
  const cancel = useMutation({
    mutationFn: onCancelAll,
    onError: () => notifyError(t('Failed to cancel all runs, try again later')),
  });

  return (
    <div className="grid gap-4 rounded-lg border border-line bg-surface p-4 md:p-6">
      <div className="grid gap-2">
        <p role="status" className="text-lg font-semibold tabular-nums">
          {batchSummary(items)}
        </p>
        {!isAllFinished && (
          <>
            <ProgressBar
              label={t('Overall progress')}
              fraction={sum(accepted.map(completion)) / accepted.length}
            />
            <p className="text-sm text-soft">
              {items.some(isUnsent)
                ? t('Keep this tab open until all files are uploaded.')
                : t('You can leave this page. Runs continue, and you’ll find the results with your images.')}
            </p>
          </>
        )}
      </div>
      {count('unpaid') > 0 && (
        <div className="grid gap-2">
          {/* After buying credits, the user may have enough for the remaining files. */}
          {isShort && <NotEnoughCredits />}
          <p className="text-sm text-soft">
            {t('Finished results are kept, and runs in progress continue.')}
          </p>
        </div>
      )}
      <div className="flex flex-wrap justify-end gap-3 max-sm:*:grow">
        {!isAllFinished && (
          <Button variant="secondary" isBusy={cancel.isPending} onClick={() => cancel.mutate()}>
            {t('Cancel all')}
          </Button>
        )}
        {retryable > 0 && (
          <Button variant="secondary" onClick={onRetryAll}>
            {t('Retry all ({count})', { count: formatNumber(retryable) })}
          </Button>
        )}
        {isAllFinished && (
          <Button variant="secondary" onClick={onClose}>
            {t('New batch')}
          </Button>
        )}
        {count('done') > 0 && <ZipButton batch={batch} isComplete={isAllFinished} fileName={zipName} />}
      </div>
    </div>
  );
}

type ZipButtonProps = { batch: Batch; isComplete: boolean; fileName: string };

/** Downloads the results that there are. */
function ZipButton({ batch, isComplete, fileName }: ZipButtonProps) {
  const [fetched, setFetched] = useState(0);
  const stopping = useRef(new AbortController());
  const done = batch.items.filter(({ state }) => state.kind === 'done');
  const zip = useMutation({
    mutationFn: async () => {
      setFetched(0);
      stopping.current = new AbortController();
      const factor = batch.action?.factor;
      const names = resultNames(
        done.map(({ name }) => name),
        factor ? `-${factor}x` : '',
      );
      const files = done.map(({ jobId }, index) => ({ jobId: jobId ?? '', name: names[index] ?? '' }));
      const { downloadZip } = await loadWithRetry(loadZip);
      const missing = await downloadZip(files, fileName, setFetched, stopping.current.signal);
      if (missing > 0)
        notifyError(
          plural(missing, {
            one: 'The ZIP file lacks # result that was deleted',
            other: 'The ZIP file lacks # results that were deleted',
          }),
        );
    },
    onError: ({ name }) => {
      if (stopping.current.signal.aborted) return;
      notifyError(
        name === 'ZipTooLarge'
          ? t('The results are too large for one ZIP file: download them one by one')
          : t('Failed to download image'),
      );
    },
  });
  return (
    <>
      <Button isBusy={zip.isPending} onPointerEnter={prefetch(loadZip)} onClick={() => zip.mutate()}>
        {!zip.isPending && <Icon name="download" />}
        {zip.isPending
          ? t('Fetching {fetched} of {total}', { fetched, total: done.length })
          : isComplete
            ? t('Download all (ZIP)')
            : t('Download {count} so far (ZIP)', { count: formatNumber(done.length) })}
      </Button>
      {/* Behind it: the second click of a double click must not cancel. */}
      {zip.isPending && (
        <Button ref={passFocus} variant="quiet" onClick={() => stopping.current.abort()}>
          {t('Cancel download')}
        </Button>
      )}
    </>
  );
}

/** The completed share of an item, from 0 to 1. Uploading counts for a fifth. */
function completion({ state }: BatchItem): number {
  if (state.kind === 'uploading') return state.fraction * 0.2;
  if (state.kind === 'queued') return 0.2;
  if (state.kind === 'running') return 0.2 + (state.fraction ?? 0) * 0.8;
  return state.kind === 'waiting' || state.kind === 'paused' ? 0 : 1;
}

const sum = (numbers: number[]) => numbers.reduce((total, number) => total + number, 0);
