import type { ImageSize } from '@/lib/image-size';
import type { Area } from './marks';

/** Seen on skin, sky, leaves and paper; how much shines through is the layer's own opacity. */
export const COLOUR = '#f5117b';
/** An imported area is shown with at most so many pixels a side. */
const MAX_SIDE = 2048;

/** What was imported, as a picture to show. */
export function areaCanvas({ runs }: Area, image: ImageSize): HTMLCanvasElement {
  const scale = Math.min(1, MAX_SIDE / Math.max(image.x, image.y));
  const canvas = document.createElement('canvas');
  canvas.width = Math.ceil(image.x * scale);
  canvas.height = Math.ceil(image.y * scale);
  const context = canvas.getContext('2d');
  if (context) {
    context.fillStyle = COLOUR;
    for (let at = 0; at + 2 < runs.length; at += 3) {
      const [y = 0, from = 0, to = 0] = runs.slice(at, at + 3);
      const left = Math.floor(from * scale);
      const top = Math.floor(y * scale);
      context.fillRect(left, top, Math.ceil(to * scale) - left, Math.ceil((y + 1) * scale) - top);
    }
  }
  return canvas;
}
