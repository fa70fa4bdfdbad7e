import { type ReactNode, Suspense, useRef, useState } from 'react';
import { Button } from '@/components/button';
import { Icon } from '@/components/icon';
import { lazyWithRetry } from '@/components/lazy-with-retry';
import { Notice } from '@/components/notice';
import { isPaidBetter, isPaidLikeFree, isRepeat } from '@/features/catalog/bound-models';
import { costNote, freeNote } from '@/features/catalog/cost-note';
import type { EditingTool, ToolAction } from '@/features/catalog/tool';
import { useResults } from '@/features/results/get-results';
import { RunProblemNotice } from '@/features/runs/run-problem-notice';
import type { Image } from '@/lib/api-types';
import { useConfig, useTool } from '@/lib/env';
import { isTooBig, tooBigText } from '@/lib/max-dimension';
import { t } from '@/lib/translate';
import { useOpenWhenLoaded } from '@/lib/use-open-when-loaded';
import type { useToolRun } from './use-tool-run';

const SamplePanel = lazyWithRetry(() => import('@/features/sample/sample-panel'));
const loadDialog = () => import('@/components/confirm-dialog');
const ConfirmDialog = lazyWithRetry(loadDialog, null);

type RunPanelProps = {
  tool: EditingTool;
  image: Image;
  isMissing: boolean;
  run: ReturnType<typeof useToolRun>;
  onStart: () => void;
};

/** The tool's actions on the image, with their prices. */
export function RunPanel({ tool, image, isMissing, run, onStart }: RunPanelProps) {
  const offer = useTool(tool.name);
  const maxDimension = useConfig().limits[tool.limit];

  const isFreeUsed = image.freeRuns[tool.freeRun] || run.isFreeRefused;
  const isOversize = isTooBig(image, maxDimension);
  const isBlocked = run.isBusy || isOversize || isMissing;
  const results = useResults(tool, image.id);
  const freeResult = results.data?.find(({ credits }) => credits === 0);
  const [isSampling, setSampling] = useState(false);
  const [repeated, setRepeated] = useState<ToolAction | null>(null);
  const buttons = useRef<HTMLUListElement>(null);
  const dialog = useOpenWhenLoaded(loadDialog);

  function start(action: ToolAction) {
    run.start(action);
    onStart();
  }

  function startPaid(action: ToolAction) {
    if (offer && isRepeat(offer, action.factor, image, results.data ?? []))
      void dialog.open(() => setRepeated(action));
    else start(action);
  }

  /** A paid run that is no better than the free one must not look like the better choice. */
  const isBetterFree = (action: ToolAction) =>
    offer?.freeAvailable === true && isPaidLikeFree(offer, action.factor, image);
  const isFreeBest = !isFreeUsed && tool.paid.some(isBetterFree);
  const best = isFreeBest ? tool.free : tool.paid.find((action) => !isBetterFree(action));
  /** One action stands out, and none once there is a result: then its download does. */
  const variantOf = (action: ToolAction) =>
    action === best && !results.data?.length ? 'primary' : 'secondary';

  return (
    <div className="@container grid gap-3">
      <ul ref={buttons} className="grid gap-x-3 gap-y-4 @sm:grid-cols-2">
        {tool.paid.map((action) => (
          <Action key={action.path} note={costNote(offer, action.factor, image)}>
            <Button
              variant={variantOf(action)}
              size="lg"
              disabled={isBlocked || !offer?.available}
              isBusy={run.starting === action}
              onClick={() => startPaid(action)}
            >
              <Icon name={tool.icon} />
              {t(action.label)}
            </Button>
          </Action>
        ))}
        <Action note={isFreeUsed ? t('Free run used for this image') : freeNote(tool.free, offer, image)}>
          <Button
            variant={variantOf(tool.free)}
            size="lg"
            disabled={isBlocked || isFreeUsed || !offer?.freeAvailable}
            isBusy={run.starting === tool.free}
            onClick={() => start(tool.free)}
          >
            {t(tool.free.label)}
          </Button>
        </Action>
      </ul>
      {isMissing && (
        <Notice tone="error">{t('This image is no longer stored. Please upload it again.')}</Notice>
      )}
      {isOversize && <Notice tone="error">{tooBigText(maxDimension)}</Notice>}
      <RunProblemNotice problem={run.problem} />
      {tool.name === 'upscale' && offer && !isOversize && !isMissing && isPaidBetter(offer, 2, image) && (
        <Suspense>
          {isSampling ? (
            <SamplePanel key={image.id} original={image.url} size={image} free={freeResult?.url ?? null} />
          ) : (
            <Button variant="quiet" onClick={() => setSampling(true)}>
              {t('Compare a detail')}
            </Button>
          )}
        </Suspense>
      )}
      {repeated && (
        <Suspense>
          <ConfirmDialog
            title={t('You already have this result')}
            text={t(
              'Another run makes the same picture again: nothing has changed since. It costs {price}.',
              { price: costNote(offer, repeated.factor) },
            )}
            action={t('Run again')}
            isSafe
            onConfirm={() => start(repeated)}
            onClose={() => setRepeated(null)}
            onClosed={() => buttons.current?.querySelectorAll('button')[tool.paid.indexOf(repeated)]?.focus()}
          />
        </Suspense>
      )}
    </div>
  );
}

/** A button with its note. Alone in its row, it takes the whole row. */
function Action({ note, children }: { note: string; children: ReactNode }) {
  return (
    <li className="grid content-start gap-1.5 last:odd:col-span-full">
      {children}
      <p className="text-center text-xs text-balance text-soft">{note}</p>
    </li>
  );
}
