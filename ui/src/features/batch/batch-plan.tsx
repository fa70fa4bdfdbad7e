import { Link } from 'react-router';
import { Button } from '@/components/button';
import { Notice } from '@/components/notice';
import { costNote, freeNote } from '@/features/catalog/cost-note';
import type { EditingTool, ToolAction } from '@/features/catalog/tool';
import type { ToolOffer } from '@/lib/api-types';
import { classNames } from '@/lib/class-names';
import { useTool } from '@/lib/env';
import { credits } from '@/lib/format';
import { paths } from '@/lib/paths';
import { plural, t } from '@/lib/translate';
import { type BatchItem, isReady } from './batch-store';
import { countLikeFree } from './like-free';

type BatchPlanProps = {
  tool: EditingTool;
  items: BatchItem[];
  action: ToolAction;
  /** Credits the user can spend; null while unknown. */
  available: number | null;
  onAction: (action: ToolAction) => void;
  onStart: () => void;
  onDiscard: () => void;
};

/** The action for the files and its total price, before anything is sent. */
export function BatchPlan(props: BatchPlanProps) {
  const { tool, items, action, available, onAction, onStart, onDiscard } = props;
  const offer = useTool(tool.name);
  const ready = items.filter(isReady).length;
  const isChecking = items.some(({ state }) => state.kind === 'checking');
  const isFree = action === tool.free;
  const each = isFree ? 0 : priceOf(action, offer);
  const total = ready * each;
  const affordable = each > 0 && available !== null ? Math.floor(available / each) : ready;
  // With too few credits for a single run, nothing can be started.
  const starting = affordable === 0 ? ready : Math.min(ready, affordable);
  const isOffered = isFree ? offer?.freeAvailable : offer?.available;

  function paidNote(option: ToolAction): string {
    const count = countLikeFree(option, offer, items);
    if (!offer?.available || count === 0) return costNote(offer, option.factor);
    const likeFree =
      count === ready
        ? t('same result as the free run')
        : t('same result as the free run for {count} of {total}', { count, total: ready });
    return `${costNote(offer, option.factor)} · ${likeFree}`;
  }

  return (
    <div className="grid gap-4 rounded-lg border border-line bg-surface p-4 md:p-6">
      <fieldset className="grid gap-2">
        <legend className="mb-2 text-lg font-semibold">{t('Choose an action')}</legend>
        {[...tool.paid, tool.free].map((option) => (
          <label
            key={option.path}
            className={classNames(
              'grid min-h-11 cursor-pointer grid-cols-[auto_1fr] items-center gap-x-3 rounded-md border px-4 py-2 has-focus-visible:outline-2 has-focus-visible:outline-accent',
              option.path === action.path
                ? 'border-accent bg-accent-wash'
                : 'border-line hover:border-control',
            )}
          >
            <input
              type="radio"
              name="batch-action"
              checked={option.path === action.path}
              onChange={() => onAction(option)}
              className="size-4 outline-none"
            />
            <span className="font-semibold">{t(option.label)}</span>
            <span className="col-start-2 text-sm text-soft">
              {option === tool.free ? freeNote(option, offer) : paidNote(option)}
            </span>
          </label>
        ))}
      </fieldset>
      <div role="status" className="tabular-nums">
        <p className="text-lg font-semibold">
          {isFree
            ? t('{images}, free', { images: countImages(ready) })
            : `${countImages(ready)} × ${credits(each)} = ${credits(total)}`}
        </p>
        {!isFree && available !== null && (
          <p className="text-sm text-soft">{t('You have {credits}.', { credits: credits(available) })}</p>
        )}
      </div>
      {affordable < ready && (
        <Notice tone="warning">
          {affordable > 0
            ? t('You have enough credits for the first {affordable} of {ready}. We won’t start the others.', {
                affordable,
                ready,
              })
            : t('You don’t have enough credits for any of them.')}{' '}
          <Link to={paths.pricing} className="font-semibold underline underline-offset-4">
            {t('Get more credits')}
          </Link>
        </Notice>
      )}
      <div className="flex flex-wrap justify-end gap-3">
        <Button variant="secondary" onClick={onDiscard}>
          {t('Cancel')}
        </Button>
        <Button disabled={ready === 0 || isChecking || affordable === 0 || !isOffered} onClick={onStart}>
          {plural(starting, { one: 'Start # run', other: 'Start # runs' })}
        </Button>
      </div>
    </div>
  );
}

/** The credits that a paid run costs. */
export const priceOf = (action: ToolAction, offer: ToolOffer | undefined): number =>
  offer?.costs.find(({ factor }) => (factor ?? null) === action.factor)?.credits ?? 0;

export const countImages = (count: number) => plural(count, { one: '# image', other: '# images' });
