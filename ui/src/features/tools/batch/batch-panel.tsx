import { useQueryClient } from '@tanstack/react-query';
import { useEffect, useEffectEvent, useRef } from 'react';
import { Button } from '@/components/button';
import { classNames } from '@/lib/class-names';
import { useConfig } from '@/lib/env';
import { useSession } from '@/lib/session';
import type { EditingTool } from '../tool';
import { addFiles } from './add-files';
import { type Batch, type BatchItem, closeBatch, updateBatch } from './batch';
import { BatchPlan, imagesOf } from './batch-plan';
import { BatchProgress } from './batch-progress';
import { BatchRow } from './batch-row';
import { runnerOf } from './run-batch';

type BatchPanelProps = {
  tool: EditingTool;
  batch: Batch;
  /** What the user may spend; null while that is not known. */
  available: number | null;
  onClose: () => void;
};

/** Several files at once: first what shall be done and what it costs, then how far each of them is. */
export default function BatchPanel({ tool, batch, available, onClose }: BatchPanelProps) {
  const { limits } = useConfig();
  const { userId } = useSession();
  const runner = runnerOf(tool, useQueryClient());
  const input = useRef<HTMLInputElement>(null);
  const heading = useRef<HTMLHeadingElement>(null);
  const { items, hasStarted } = batch;
  // What cannot be read is listed with the reason, and nothing will become of it.
  const fit = items.filter(({ state }) => state.kind !== 'refused').length;

  // After a reload somebody has to ask what has become of them.
  const goOn = useEffectEvent(() => hasStarted && runner.work());
  useEffect(() => {
    goOn();
    heading.current?.focus({ preventScroll: true });
  }, []);

  function start() {
    updateBatch(tool.name, ({ items }) => ({
      hasStarted: true,
      items: items.map((item) =>
        item.state.kind === 'ready' ? { ...item, state: { kind: 'waiting' } } : item,
      ),
    }));
    runner.work();
    heading.current?.focus();
  }

  function remove(item: BatchItem) {
    if (item.address) URL.revokeObjectURL(item.address);
    const left = items.filter(({ id }) => id !== item.id);
    if (left.length === 0) return close();
    updateBatch(tool.name, () => ({ items: left }));
    // The button went with its row; the keyboard goes on from here, and a long list stays where it is.
    heading.current?.focus({ preventScroll: true });
  }

  function retryAll() {
    for (const item of items) {
      if (['failed', 'unpaid', 'cancelled'].includes(item.state.kind)) runner.retry(item);
    }
  }

  function close() {
    closeBatch(tool.name);
    onClose();
  }

  return (
    <div className="grid items-start gap-6 lg:grid-cols-[3fr_2fr] lg:gap-8">
      <section aria-labelledby="batch" className="min-w-0">
        <div className="mb-4 flex min-h-9 items-center justify-between gap-4">
          <h2 id="batch" ref={heading} tabIndex={-1} className="text-lg font-semibold outline-none">
            {imagesOf(fit)}
          </h2>
          {!hasStarted && (
            <>
              <input
                ref={input}
                type="file"
                accept="image/*"
                multiple
                aria-label="More image files"
                hidden
                onChange={({ target }) => {
                  const files = Array.from(target.files ?? []).filter(({ type }) =>
                    type.startsWith('image/'),
                  );
                  void addFiles(tool, files, userId, {
                    maxDimension: limits[tool.limit],
                    maxBytes: limits.maxUploadBytes,
                  });
                  target.value = '';
                }}
              />
              <Button look="secondary" size="sm" onClick={() => input.current?.click()}>
                Add files
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
              item={item}
              pageOf={(imageId) => `${tool.address}/${imageId}`}
              onRetry={() => runner.retry(item)}
              onRemove={hasStarted ? null : () => remove(item)}
            />
          ))}
        </ul>
      </section>
      {/* What is asked once stands after the files; how far all of them are is looked at again and again. */}
      <div className={classNames('lg:sticky lg:top-24', hasStarted && 'max-lg:order-first')}>
        {hasStarted ? (
          <BatchProgress
            batch={batch}
            zipName={`retouch-${tool.name}.zip`}
            onCancelAll={runner.cancelAll}
            onRetryAll={retryAll}
            onClose={close}
          />
        ) : (
          <BatchPlan
            tool={tool}
            batch={batch}
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
