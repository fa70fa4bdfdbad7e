/** The share of the brush's radius that is soft: from full effect at its inner end to none at the rim. */
const SOFT_SHARE = 0.3;
/** A thinner brush could pass between pixel centers. */
const MIN_RADIUS = 0.75;

/** Returns the effect of the brush, from 0 to 1, at a distance from its line. */
export function softness(distance: number, radius: number): number {
  const rim = Math.max(radius * SOFT_SHARE, 0.5);
  return Math.min(1, Math.max(0, (radius - distance) / rim));
}

export const radiusOf = (size: number) => Math.max(size / 2, MIN_RADIUS);

/** Lines of decreasing width that add up to the soft brush when they are drawn over each other. */
export function softLayers(size: number): { width: number; opacity: number }[] {
  const count = 5;
  return Array.from({ length: count }, (_, index) => {
    const [before, after] = [index / count, (index + 1) / count];
    return { width: size * (1 - before * SOFT_SHARE), opacity: (after - before) / (1 - before) };
  });
}
