import type { Shape } from '@/features/mask/marks';

/** The images that a mask was drawn for. */
export const drawnFor = new Set<unknown>();

/** Stands in for the mask layer, since jsdom has no canvas: lists the shapes that it would draw. */
export default function MaskLayer({
  image,
  shapes,
  reach,
}: {
  image: unknown;
  shapes: Shape[];
  reach: number;
}) {
  drawnFor.add(image);
  return (
    <p data-testid="mask" data-reach={reach}>
      {shapes.map((shape) => (shape.kind === 'area' && shape.erases ? 'erased area' : shape.kind)).join(' ')}
    </p>
  );
}
