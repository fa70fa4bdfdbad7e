import type { BoundModel, Result, ToolOffer } from '@/lib/api-types';
import type { ImageSize } from '@/lib/image-size';

type Factor = 2 | 4 | null;

/** The models that a run on this image may get. Several workers may have different models. */
function modelsFor(models: BoundModel[], factor: Factor, { x, y }: ImageSize): BoundModel[] {
  const fits = ({ largestPixels }: BoundModel) => largestPixels == null || x * y <= largestPixels;
  return models.filter((model) => (model.factor ?? factor) === factor && fits(model));
}

/** Whether a paid run on this image gets the model that free runs get. */
export function isPaidLikeFree({ models }: ToolOffer, factor: Factor, image: ImageSize): boolean {
  const free = modelsFor(models.allFree, factor, image);
  const paid = modelsFor(models.allPaid, factor, image);
  return paid.length > 0 && paid.every(({ sha256 }) => free.some((model) => model.sha256 === sha256));
}

/** Whether a paid run on this image gets a better model than free runs get. */
export function isPaidBetter(offer: ToolOffer, factor: Factor, image: ImageSize): boolean {
  return offer.available && offer.freeAvailable && !isPaidLikeFree(offer, factor, image);
}

/** Whether a paid run would make one of these results again: the same image, factor and model. */
export function isRepeat(
  { models }: ToolOffer,
  factor: Factor,
  image: ImageSize,
  results: Pick<Result, 'factor' | 'modelSha256'>[],
): boolean {
  const made = results.filter((result) => (result.factor ?? null) === factor);
  const paid = modelsFor(models.allPaid, factor, image);
  return (
    paid.length > 0 && paid.every(({ sha256 }) => made.some(({ modelSha256 }) => modelSha256 === sha256))
  );
}

/** A smaller picture takes as long: a run has at least one tile. The API counts it so, too. */
const SMALLEST_PIXELS = 256 * 256;

/** The seconds that a run on this image typically takes; null without a recent run. */
export function typicalSeconds(
  { tool, models, times }: ToolOffer,
  tier: 'paid' | 'free',
  factor: Factor,
  image: ImageSize,
): number | null {
  const bound = modelsFor(tier === 'paid' ? models.allPaid : models.allFree, factor, image);
  // A model for small images comes before the one for all.
  const model = bound.find(({ largestPixels }) => largestPixels != null) ?? bound[0];
  const time = times.find((one) => one.tier === tier && one.model === model?.model);
  if (!time) return null;
  // Only upscaling depends on the size: the other models work at a size of their own.
  const pixels = Math.max(image.x * image.y, SMALLEST_PIXELS);
  return tool === 'upscale' ? (time.secondsPerMegapixel * pixels) / 1_000_000 : time.seconds;
}

/** The seconds that a paid run typically takes; null if there were none. Of several models, the middle one counts. */
export function medianSeconds({ times }: ToolOffer): number | null {
  const paid = times.filter(({ tier }) => tier === 'paid').map(({ seconds }) => seconds);
  return paid.toSorted((a, b) => a - b)[Math.floor((paid.length - 1) / 2)] ?? null;
}
