import { isPaidLikeFree } from '@/features/catalog/bound-models';
import type { EditingTool, ToolAction } from '@/features/catalog/tool';
import type { ToolOffer } from '@/lib/api-types';
import { type BatchItem, isReady } from './batch-store';

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

/** The default action: the free run if a paid one would give the same result for every file. */
export function defaultAction(
  { paid, free }: EditingTool,
  offer: ToolOffer | undefined,
  items: BatchItem[],
): ToolAction {
  const ready = items.filter(isReady).length;
  const isFreeBest = ready > 0 && paid.some((action) => countLikeFree(action, offer, items) === ready);
  return isFreeBest ? free : (paid[0] ?? free);
}
