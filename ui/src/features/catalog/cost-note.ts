import type { ToolOffer } from '@/lib/api-types';
import { credits, formatSeconds } from '@/lib/format';
import type { ImageSize } from '@/lib/image-size';
import { t } from '@/lib/translate';
import { isPaidLikeFree, typicalSeconds } from './bound-models';
import type { ToolAction } from './tool';

/** The note under the button of a paid run: its price and, for one image, what to expect of it. */
export function costNote(offer: ToolOffer | undefined, factor: 2 | 4 | null, image?: ImageSize): string {
  if (!offer?.available) return t('Not installed on this server');
  const cost = offer.costs.find((candidate) => (candidate.factor ?? null) === factor);
  const isLikeFree = image && isPaidLikeFree(offer, factor, image);
  return joined(
    cost && credits(cost.credits),
    isLikeFree && t('same result as the free run'),
    timeNote(offer, 'paid', factor, image),
  );
}

/** The note under the button of a free run. */
export function freeNote({ factor }: ToolAction, offer: ToolOffer | undefined, image?: ImageSize): string {
  if (!offer?.freeAvailable) return t('No free runs on this server');
  return joined(t('Free, once per image'), factor && `${factor}X`, timeNote(offer, 'free', factor, image));
}

function timeNote(offer: ToolOffer, tier: 'paid' | 'free', factor: 2 | 4 | null, image?: ImageSize) {
  const seconds = image ? typicalSeconds(offer, tier, factor, image) : null;
  return seconds !== null && t('about {seconds}', { seconds: formatSeconds(seconds) });
}

const joined = (...parts: (string | number | false | null | undefined)[]) =>
  parts.filter(Boolean).join(' · ');
