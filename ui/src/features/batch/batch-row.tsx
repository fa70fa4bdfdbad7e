import { memo } from 'react';
import { Button } from '@/components/button';
import { ButtonLink } from '@/components/button-link';
import { Icon } from '@/components/icon';
import { ProgressBar } from '@/components/progress-bar';
import type { EditingTool } from '@/features/catalog/tool';
import { classNames } from '@/lib/class-names';
import { formatBytes, formatCount, formatPercent, formatTimeLeft } from '@/lib/format';
import { useLanguage } from '@/lib/language';
import { plural, t } from '@/lib/translate';
import { type BatchItem, canRetry, hasProblem, type ItemState } from './batch-store';
import { renewResult } from './renew-result';

/** Large enough for a thumb on small screens. */
const thumb = 'max-sm:min-h-11';

type BatchRowProps = {
  tool: EditingTool;
  item: BatchItem;
  onRetry: (item: BatchItem) => void;
  /** Null once the batch has started. */
  onRemove: ((item: BatchItem) => void) | null;
};

/** One file of a batch, with its progress and its actions. Memoized: a batch can have hundreds. */
export const BatchRow = memo(function BatchRow(props: BatchRowProps) {
  useLanguage();
  const { tool, item, onRetry, onRemove } = props;
  const { name, bytes, size, state, image } = item;
  // The browser cannot show a picture that it could not measure.
  const isUnreadable = state.kind === 'rejected' && !size;
  const picture = state.kind === 'done' ? state.result.thumbnailUrl : isUnreadable ? null : item.previewUrl;
  const fraction = fractionOf(state);
  const isProblem = hasProblem(item);
  return (
    <li tabIndex={-1} className="flex items-center gap-3 px-4 py-3 -outline-offset-2! sm:gap-4">
      <span className="checkerboard grid size-12 shrink-0 place-items-center overflow-hidden rounded-sm">
        {picture ? (
          <img
            src={picture}
            alt=""
            loading="lazy"
            decoding="async"
            className="size-full object-cover"
            onError={() => void renewResult(tool.name, item)}
          />
        ) : (
          <Icon name="image" className="size-5 text-soft" />
        )}
      </span>
      {/* Name and state: stacked on a phone, side by side elsewhere. The actions follow both. */}
      <span className="grid min-w-0 flex-1 gap-1 sm:grid-cols-2 sm:items-center sm:gap-4">
        <span className="min-w-0">
          <span dir="auto" className="block truncate font-medium" title={name}>
            {name}
          </span>
          <span className="block text-sm text-soft tabular-nums sm:truncate">
            {size && `${t('{x} × {y} px', { x: size.x, y: size.y })} · `}
            {formatBytes(bytes)}
          </span>
        </span>
        <span className="grid min-w-0 gap-1.5">
          <span className={classNames('flex gap-2 text-sm', isProblem ? 'text-danger' : 'text-soft')}>
            {state.kind === 'done' && <Icon name="check" className="mt-0.5 size-4 text-accent" />}
            {isProblem && <Icon name="warning" className="mt-0.5 size-4" />}
            <span className={classNames('min-w-0 tabular-nums', state.kind === 'done' && 'text-ink')}>
              {stateText(state)}
            </span>
          </span>
          {fraction !== undefined && (
            <ProgressBar
              label={t('Progress of {name}', { name })}
              fraction={fraction}
              detail={state.kind === 'running' ? formatCount(state.count) : null}
            />
          )}
        </span>
      </span>
      <span className="flex shrink-0 justify-end sm:w-20">
        {canRetry(item) && (
          <Button
            variant="secondary"
            size="sm"
            className={thumb}
            aria-label={t('Retry {name}', { name })}
            onClick={({ currentTarget }) => {
              onRetry(item);
              // The button disappears.
              currentTarget.closest('li')?.focus();
            }}
          >
            {t('Retry')}
          </Button>
        )}
        {state.kind === 'done' && image && (
          <ButtonLink
            variant="secondary"
            size="sm"
            className={thumb}
            to={`${tool.pagePath}/${image.id}`}
            aria-label={t('Open {name}', { name })}
          >
            {t('Open')}
          </ButtonLink>
        )}
        {onRemove && (
          <Button
            variant="quiet"
            size="md"
            className="-mr-2"
            aria-label={t('Remove {name}', { name })}
            title={t('Remove')}
            // The second click of a double click would remove the file that moved under the pointer.
            onClick={({ detail }) => detail !== 2 && onRemove(item)}
          >
            <Icon name="close" />
          </Button>
        )}
      </span>
    </li>
  );
});

function stateText(state: ItemState): string {
  switch (state.kind) {
    case 'checking':
      return t('Checking');
    case 'ready':
      return t('Ready');
    case 'rejected':
    case 'failed':
      return state.reason;
    case 'waiting':
      return t('Waiting');
    case 'uploading':
      return state.fraction < 1
        ? t('Uploading {percent}', { percent: formatPercent(state.fraction) })
        : t('Starting');
    case 'paused':
      return state.cause === 'server'
        ? t('The server is busy. This continues automatically.')
        : t('Waiting for the network. This continues automatically.');
    case 'queued':
      return [
        state.position
          ? plural(state.position, { one: 'Queued, # ahead', other: 'Queued, # ahead' })
          : t('Queued'),
        left(state.etaSeconds),
      ]
        .filter(Boolean)
        .join(' · ');
    case 'running':
      return [
        state.fraction === null
          ? t('Running')
          : t('Running {percent}', { percent: formatPercent(state.fraction) }),
        formatCount(state.count),
        left(state.etaSeconds),
      ]
        .filter(Boolean)
        .join(' · ');
    case 'done':
      return t('Done');
    case 'canceled':
      return t('Canceled');
    case 'unpaid':
      return t('Not started: not enough credits');
  }
}

/** Undefined if there is no progress to show; null if it is unknown. */
function fractionOf(state: ItemState): number | null | undefined {
  if (state.kind === 'uploading' || state.kind === 'running') return state.fraction;
  return undefined;
}

const left = (seconds: number | null) => (seconds === null ? null : formatTimeLeft(seconds));
