import type { ImageSize } from '@/lib/image-size';
import type { Area } from './marks';

/** Stands out on skin, sky, leaves and paper. The mask layer sets the opacity. */
export const MASK_COLOR = '#f5117b';
/** Limits the canvas of an imported area, in pixels per side. */
const MAX_SIDE = 2048;

/** The canvases drawn so far. Weak, because an area that Undo or the next click hides may not keep its 16 MB. */
const drawn = new WeakMap<Area, WeakRef<HTMLCanvasElement>>();

/** Returns an imported area, drawn for display on the image that it belongs to. */
export function areaCanvas(area: Area, image: ImageSize): HTMLCanvasElement {
  const canvas = drawn.get(area)?.deref() ?? drawArea(area, image);
  drawn.set(area, new WeakRef(canvas));
  return canvas;
}

function drawArea({ spans }: Area, image: ImageSize): HTMLCanvasElement {
  const scale = Math.min(1, MAX_SIDE / Math.max(image.x, image.y));
  const canvas = document.createElement('canvas');
  canvas.width = Math.ceil(image.x * scale);
  canvas.height = Math.ceil(image.y * scale);
  const context = canvas.getContext('2d');
  if (context) {
    context.fillStyle = MASK_COLOR;
    for (let at = 0; at + 2 < spans.length; at += 3) {
      const [y = 0, from = 0, to = 0] = spans.slice(at, at + 3);
      const left = Math.floor(from * scale);
      const top = Math.floor(y * scale);
      context.fillRect(left, top, Math.ceil(to * scale) - left, Math.ceil((y + 1) * scale) - top);
    }
  }
  return canvas;
}
