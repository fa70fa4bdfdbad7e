import { useQueryClient } from '@tanstack/react-query';
import { useCallback, useEffect, useEffectEvent, useRef } from 'react';
import { useNavigate } from 'react-router';
import { Button } from '@/components/button';
import { useIncomingFiles } from '@/components/use-incoming-files';
import type { EditingTool } from '@/features/catalog/tool';
import { classNames } from '@/lib/class-names';
import { useConfig, useTool } from '@/lib/env';
import { pictureTypes } from '@/lib/picture-kind';
import { useSession } from '@/lib/session';
import { t } from '@/lib/translate';
import { fileLimits } from '@/lib/use-chosen-image';
import { useKeptPicture } from '@/lib/use-kept-picture';
import { addFiles } from './add-files';
import { BatchPlan, countImages, priceOf } from './batch-plan';
import { BatchProgress } from './batch-progress';
import { BatchRow } from './batch-row';
import { batchRunner } from './batch-runner';
import {
  type Batch,
  type BatchItem,
  canRetry,
  closeBatch,
  isReady,
  updateBatch,
  useBatches,
} from './batch-store';
import './keep-batches';
import { defaultAction } from './like-free';

type BatchPanelProps = {
  tool: EditingTool;
  batch: Batch;
  /** Credits the user can spend; null while unknown. */
  available: number | null;
  onClose: () => void;
};

/** A batch of files: first the action and its price, then the progress of each file. */
export default function BatchPanel({ tool, batch, available, onClose }: BatchPanelProps) {
  const config = useConfig();
  const { userId } = useSession();
  const offer = useTool(tool.name);
  const runner = batchRunner(tool, useQueryClient());
  const navigate = useNavigate();
  const input = useRef<HTMLInputElement>(null);
  const heading = useRef<HTMLHeadingElement>(null);
  const { items, hasStarted } = batch;
  const action = batch.action ?? defaultAction(tool, offer, items);
  // Rejected files stay in the list with the reason.
  const accepted = items.filter(({ state }) => state.kind !== 'rejected').length;

  // Resumes a batch that was restored after a reload.
  const resume = useEffectEvent(() => hasStarted && void runner.resume(navigate));
  useEffect(() => {
    resume();
    heading.current?.focus({ preventScroll: true });
    return runner.attend(navigate);
  }, [runner, navigate]);

  function start() {
    updateBatch(tool.name, ({ items }) => ({
      action,
      hasStarted: true,
      items: items.map((item) => (isReady(item) ? { ...item, state: { kind: 'waiting' } } : item)),
    }));
    runner.work();
    heading.current?.focus();
  }

  const close = useCallback(() => {
    closeBatch(tool.name);
    onClose();
  }, [tool.name, onClose]);

  // A stable function: it is a property of every row.
  const remove = useCallback(
    (item: BatchItem) => {
      if (item.previewUrl) URL.revokeObjectURL(item.previewUrl);
      updateBatch(tool.name, ({ items }) => ({ items: items.filter(({ id }) => id !== item.id) }));
      if (useBatches.getState()[tool.name]?.items.length === 0) return close();
      // The Remove button disappears with its row; the focus moves here, without scrolling a long list.
      heading.current?.focus({ preventScroll: true });
    },
    [tool.name, close],
  );

  function retryAll() {
    for (const item of items.filter(canRetry)) runner.retry(item);
    // The button disappears.
    heading.current?.focus();
  }

  const add = (...files: File[]) =>
    void addFiles(tool, files, userId, fileLimits(config, config.limits[tool.limit]));
  const takers = { onFile: add, onFiles: (files: File[]) => add(...files) };
  // A batch that has started takes no more files.
  useKeptPicture(hasStarted ? null : add);
  const accept = useIncomingFiles(hasStarted ? null : takers);

  return (
    <div className="grid items-start gap-6 lg:grid-cols-[3fr_2fr] lg:gap-8">
      <section aria-labelledby="batch" className="min-w-0">
        <div className="mb-4 flex min-h-9 items-center justify-between gap-4">
          <h2 id="batch" ref={heading} tabIndex={-1} className="text-lg font-semibold outline-none">
            {countImages(hasStarted && accepted === 0 ? items.length : accepted)}
          </h2>
          {!hasStarted && (
            <>
              <input
                ref={input}
                type="file"
                accept={pictureTypes(config.features)}
                multiple
                aria-label={t('More image files')}
                hidden
                onChange={({ target }) => {
                  accept(target.files);
                  target.value = '';
                }}
              />
              <Button variant="secondary" size="sm" onClick={() => input.current?.click()}>
                {t('Add files')}
              </Button>
            </>
          )}
        </div>
        <ul
          aria-labelledby="batch"
          className="divide-y divide-line overflow-hidden rounded-lg border border-line bg-surface"
        >
          {items.map((item) => (
            <BatchRow
              key={item.id}
              tool={tool}
              item={item}
              onRetry={runner.retry}
              onRemove={hasStarted ? null : remove}
            />
          ))}
        </ul>
      </section>
      {/* On narrow screens the plan follows the files, but the progress precedes them. */}
      <div className={classNames('lg:sticky lg:top-24', hasStarted && 'max-lg:order-first')}>
        {hasStarted ? (
          <BatchProgress
            batch={batch}
            isShort={available === null || available < priceOf(action, offer)}
            zipName={`retouch-${tool.name}.zip`}
            onCancelAll={runner.cancelAll}
            onRetryAll={retryAll}
            onClose={close}
          />
        ) : (
          <BatchPlan
            tool={tool}
            items={items}
            action={action}
            available={available}
            onAction={(action) => updateBatch(tool.name, () => ({ action }))}
            onStart={start}
            onDiscard={close}
          />
        )}
      </div>
    </div>
  );
}

export { resumeBatches } from './resume-batches';
