import { Button } from '@/components/button';
import { ButtonLink } from '@/components/button-link';
import { Icon } from '@/components/icon';
import { ProgressBar } from '@/components/progress-bar';
import { classNames } from '@/lib/class-names';
import { formatBytes, formatCount, formatLeft } from '@/lib/format';
import type { BatchItem, ItemState } from './batch';

/** High enough for a thumb, where there is one. */
const thumb = 'max-sm:min-h-11';

type BatchRowProps = {
  item: BatchItem;
  /** The page of an image, where its result is shown. */
  pageOf: (imageId: string) => string;
  onRetry: () => void;
  /** Null once they are on their way. */
  onRemove: (() => void) | null;
};

/** One file of a batch: what it is, how far it is, and what can be done with it. */
export function BatchRow({ item, pageOf, onRetry, onRemove }: BatchRowProps) {
  const { name, bytes, size, state, image } = item;
  // What could not be measured cannot be shown either.
  const isUnreadable = state.kind === 'refused' && !size;
  const picture = state.kind === 'done' ? state.result.thumbnailUrl : isUnreadable ? null : item.address;
  const fraction = fractionOf(state);
  const isBad = state.kind === 'refused' || state.kind === 'failed' || state.kind === 'unpaid';
  return (
    <li className="flex items-center gap-3 px-4 py-3 sm:gap-4">
      <span className="checkerboard grid size-12 shrink-0 place-items-center overflow-hidden rounded-sm">
        {picture ? (
          <img src={picture} alt="" decoding="async" className="size-full object-cover" />
        ) : (
          <Icon name="image" className="size-5 text-soft" />
        )}
      </span>
      {/* Below each other on a phone, beside each other elsewhere; what can be done stays beside both. */}
      <span className="grid min-w-0 flex-1 gap-1 sm:grid-cols-2 sm:items-center sm:gap-4">
        <span className="min-w-0">
          <span className="block truncate font-medium" title={name}>
            {name}
          </span>
          <span className="block truncate text-sm text-soft tabular-nums">
            {size && `${size.x} × ${size.y} px · `}
            {formatBytes(bytes)}
          </span>
        </span>
        <span className="grid min-w-0 gap-1.5">
          <span className={classNames('flex gap-2 text-sm', isBad ? 'text-danger' : 'text-soft')}>
            {state.kind === 'done' && <Icon name="check" className="mt-0.5 size-4 text-accent" />}
            {isBad && <Icon name="warning" className="mt-0.5 size-4" />}
            <span className={classNames('min-w-0 tabular-nums', state.kind === 'done' && 'text-ink')}>
              {wordsOf(state)}
            </span>
          </span>
          {fraction !== undefined && (
            <ProgressBar
              label={`Progress of ${name}`}
              fraction={fraction}
              detail={state.kind === 'running' ? formatCount(state.count) : null}
            />
          )}
        </span>
      </span>
      <span className="flex shrink-0 justify-end sm:w-20">
        {(state.kind === 'failed' || state.kind === 'unpaid' || state.kind === 'cancelled') && (
          <Button look="secondary" size="sm" className={thumb} aria-label={`Retry ${name}`} onClick={onRetry}>
            Retry
          </Button>
        )}
        {state.kind === 'done' && image && (
          <ButtonLink
            look="secondary"
            size="sm"
            className={thumb}
            to={pageOf(image.id)}
            aria-label={`Open ${name}`}
          >
            Open
          </ButtonLink>
        )}
        {onRemove && (
          <Button
            look="quiet"
            size="md"
            className="-mr-2"
            aria-label={`Remove ${name}`}
            title="Remove"
            // The second click of a double one would meet the file that has come up below the pointer.
            onClick={({ detail }) => detail !== 2 && onRemove()}
          >
            <Icon name="close" />
          </Button>
        )}
      </span>
    </li>
  );
}

function wordsOf(state: ItemState): string {
  switch (state.kind) {
    case 'checking':
      return 'Checking';
    case 'ready':
      return 'Ready';
    case 'refused':
    case 'failed':
      return state.reason;
    case 'waiting':
      return 'Waiting for its turn';
    case 'uploading':
      return state.fraction < 1 ? `Uploading ${percent(state.fraction)}` : 'Starting';
    case 'held':
      return state.by === 'server'
        ? 'The server has enough for the moment; it goes on by itself'
        : 'Waiting for the network; it goes on by itself';
    case 'queued':
      return [state.position ? `Queued, ${state.position} ahead` : 'Queued', left(state.etaSeconds)]
        .filter(Boolean)
        .join(' · ');
    case 'running':
      return [
        state.fraction === null ? 'Running' : `Running ${percent(state.fraction)}`,
        formatCount(state.count),
        left(state.etaSeconds),
      ]
        .filter(Boolean)
        .join(' · ');
    case 'done':
      return 'Done';
    case 'cancelled':
      return 'Cancelled';
    case 'unpaid':
      return 'Not started: not enough credits';
  }
}

/** Undefined where nothing is under way. */
function fractionOf(state: ItemState): number | null | undefined {
  if (state.kind === 'uploading' || state.kind === 'running') return state.fraction;
  return undefined;
}

const percent = (fraction: number) => `${Math.round(fraction * 100)}%`;
const left = (seconds: number | null) => (seconds === null ? null : formatLeft(seconds));
