import { useEffect, useRef } from 'react';
import type { ImageSize } from '@/lib/image-size';
import { KonvaMask } from './konva-mask';
import type { Shape, Stroke } from './marks';
import type { Box, View } from './view';

type MaskLayerProps = { image: ImageSize; shapes: Shape[]; draft: Stroke | null; box: Box; view: View };

/** The mask over the image. The only file that pulls in the drawing library, so it is fetched by itself. */
export default function MaskLayer({ image: { x, y }, shapes, draft, box, view }: MaskLayerProps) {
  const host = useRef<HTMLDivElement>(null);
  const mask = useRef<KonvaMask>(null);

  // Before the effects below, which need it.
  useEffect(() => {
    if (!host.current) return;
    const made = new KonvaMask(host.current, { x, y });
    mask.current = made;
    return () => made.destroy();
  }, [x, y]);

  useEffect(() => mask.current?.place(box, view), [box, view]);
  useEffect(() => mask.current?.showShapes(shapes), [shapes]);
  useEffect(() => mask.current?.showDraft(draft), [draft]);

  return <div ref={host} data-mask className="pointer-events-none absolute inset-0 opacity-55" />;
}
