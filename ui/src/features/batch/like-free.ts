import { isPaidLikeFree } from '@/features/catalog/bound-models';
import type { EditingTool, ToolAction } from '@/features/catalog/tool';
import type { ToolOffer } from '@/lib/api-types';
import type { BatchItem } from './batch-store';

export const isReady = ({ state }: BatchItem) => state.kind === 'ready';

/** Counts the files for which a free run gives the same result as the paid action. */
export function countLikeFree(
  { factor }: ToolAction,
  offer: ToolOffer | undefined,
  items: BatchItem[],
): number {
  if (!offer?.freeAvailable) return 0;
  return items.filter((item) => isReady(item) && item.size && isPaidLikeFree(offer, factor, item.size))
    .length;
}

/** The default action: never a paid run that is no better than the free one for every file. */
export function defaultAction(
  { paid, free }: EditingTool,
  offer: ToolOffer | undefined,
  items: BatchItem[],
): ToolAction {
  const ready = items.filter(isReady).length;
  const isFreeBest = ready > 0 && paid.some((action) => countLikeFree(action, offer, items) === ready);
  return isFreeBest ? free : (paid[0] ?? free);
}
