import type { ToolOffer } from '@/lib/api-types';
import { credits } from '@/lib/format';
import type { ToolAction } from './tool';

/** The note under the button of a paid run: its price and its model. */
export function costNote(offer: ToolOffer | undefined, factor: number | null): string {
  if (!offer?.available) return 'Not installed on this server';
  const cost = offer.costs.find((candidate) => (candidate.factor ?? null) === factor);
  return [cost && credits(cost.credits), offer.models.paid].filter(Boolean).join(' · ');
}

/** The note under the button of a free run. */
export function freeNote({ factor }: ToolAction, offer: ToolOffer | undefined): string {
  if (!offer?.freeAvailable) return 'No free runs on this server';
  return ['Free, once per image', factor && `${factor}X`, offer.models.free].filter(Boolean).join(' · ');
}
