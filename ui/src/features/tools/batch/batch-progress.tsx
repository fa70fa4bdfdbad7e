import { useMutation } from '@tanstack/react-query';
import { useState } from 'react';
import { Button } from '@/components/button';
import { Icon } from '@/components/icon';
import { NotEnoughCredits } from '@/components/not-enough-credits';
import { ProgressBar } from '@/components/progress-bar';
import { notifyError } from '@/lib/notify';
import { type Batch, type BatchItem, isOver } from './batch';
import { resultNames } from './file-names';

const loadZip = () => import('./zip');

type BatchProgressProps = {
  batch: Batch;
  zipName: string;
  onCancelAll: () => Promise<void>;
  onRetryAll: () => void;
  onClose: () => void;
};

/** How far all of them are together, and what can be done with all of them. */
export function BatchProgress({ batch, zipName, onCancelAll, onRetryAll, onClose }: BatchProgressProps) {
  const { items } = batch;
  const sent = items.filter(({ state }) => state.kind !== 'refused');
  const count = (kind: BatchItem['state']['kind']) => sent.filter(({ state }) => state.kind === kind).length;
  const areOver = sent.every(isOver);
  const again = count('failed') + count('unpaid') + count('cancelled');
  const cancel = useMutation({
    mutationFn: onCancelAll,
    onError: () => notifyError('Failed to cancel all of them, try again later'),
  });

  return (
    <div className="grid gap-4 rounded-lg border border-line bg-surface p-4 md:p-6">
      <div className="grid gap-2">
        <p role="status" className="text-lg font-semibold tabular-nums">
          {[
            `${count('done')} of ${sent.length} done`,
            count('failed') > 0 && `${count('failed')} failed`,
            count('unpaid') > 0 && `${count('unpaid')} not started`,
            count('cancelled') > 0 && `${count('cancelled')} cancelled`,
          ]
            .filter(Boolean)
            .join(' · ')}
        </p>
        {!areOver && (
          <>
            <ProgressBar label="Progress of all" fraction={sum(sent.map(shareOf)) / sent.length} />
            <p className="text-sm text-soft">
              You can leave this page: runs go on, and their results are kept with your images.
            </p>
          </>
        )}
      </div>
      {count('unpaid') > 0 && (
        <div className="grid gap-2">
          <NotEnoughCredits />
          <p className="text-sm text-soft">What is done is kept, and what runs goes on.</p>
        </div>
      )}
      <div className="flex flex-wrap justify-end gap-3 max-sm:*:grow">
        {!areOver && (
          <Button look="secondary" isBusy={cancel.isPending} onClick={() => cancel.mutate()}>
            Cancel all
          </Button>
        )}
        {again > 0 && (
          <Button look="secondary" onClick={onRetryAll}>
            {`Try ${again} again`}
          </Button>
        )}
        {areOver && (
          <Button look="secondary" onClick={onClose}>
            New batch
          </Button>
        )}
        {count('done') > 0 && <ZipButton batch={batch} fileName={zipName} />}
      </div>
    </div>
  );
}

function ZipButton({ batch, fileName }: { batch: Batch; fileName: string }) {
  const [fetched, setFetched] = useState(0);
  const done = batch.items.filter(({ state }) => state.kind === 'done');
  const zip = useMutation({
    mutationFn: async () => {
      setFetched(0);
      const { factor } = batch.action;
      const names = resultNames(
        done.map(({ name }) => name),
        factor ? `-${factor}x` : '',
      );
      const wanted = done.map(({ jobId }, index) => ({ jobId: jobId ?? '', name: names[index] ?? '' }));
      const missing = await (await loadZip()).downloadZip(wanted, fileName, setFetched);
      if (missing > 0) notifyError(`${missing} of them had been deleted and are not in the ZIP file`);
    },
    onError: ({ name }) =>
      notifyError(
        name === 'TooMuchForOneZip'
          ? 'Too much for one ZIP file: download them one by one'
          : 'Failed to download image',
      ),
  });
  return (
    <Button isBusy={zip.isPending} onPointerEnter={loadZip} onClick={() => zip.mutate()}>
      {!zip.isPending && <Icon name="download" />}
      {zip.isPending ? `Fetching ${fetched} of ${done.length}` : 'Download all (ZIP)'}
    </Button>
  );
}

/** How much of one is behind it, from 0 to 1. */
function shareOf({ state }: BatchItem): number {
  if (state.kind === 'uploading') return state.fraction * 0.2;
  if (state.kind === 'queued') return 0.2;
  if (state.kind === 'running') return 0.2 + (state.fraction ?? 0) * 0.8;
  return state.kind === 'waiting' || state.kind === 'held' ? 0 : 1;
}

const sum = (numbers: number[]) => numbers.reduce((total, number) => total + number, 0);
