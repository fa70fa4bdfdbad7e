import type { ToolOffer } from '@/lib/api-types';
import { credits } from '@/lib/format';

/** What stands under the button of a paid run. */
export function costNote(offer: ToolOffer | undefined, factor: number | null): string {
  if (!offer?.available) return 'Not installed on this server';
  const cost = offer.costs.find((candidate) => (candidate.factor ?? null) === factor);
  return [cost && credits(cost.credits), offer.models.paid].filter(Boolean).join(' · ');
}
