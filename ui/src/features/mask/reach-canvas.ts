import type { ImageSize } from '@/lib/image-size';
import { areaCanvas } from './area-canvas';
import { drawStroke } from './draw-stroke';
import { inverted } from './inverted';
import { type Shape, shapesOf } from './marks';

/** Limits the canvas, in pixels per side. */
const MAX_SIDE = 2048;
/** Copies of an area, placed on a circle around it to widen it. */
const COPIES = 24;

/** Draws the line around everything within `reach` image pixels of the mask. `line` is its width in image pixels. */
export function reachCanvas(
  shapes: Shape[],
  image: ImageSize,
  reach: number,
  line: number,
): HTMLCanvasElement {
  const outline = widened(shapes, image, reach + line / 2);
  const context = outline.getContext('2d');
  if (context) {
    context.globalCompositeOperation = 'destination-out';
    context.drawImage(widened(shapes, image, reach - line / 2), 0, 0);
  }
  return outline;
}

/** Draws the mask, wider by `by` image pixels on every side. */
function widened(shapes: Shape[], image: ImageSize, by: number): HTMLCanvasElement {
  const scale = Math.min(1, MAX_SIDE / Math.max(image.x, image.y));
  const canvas = document.createElement('canvas');
  canvas.width = Math.ceil(image.x * scale);
  canvas.height = Math.ceil(image.y * scale);
  const context = canvas.getContext('2d');
  if (!context) return canvas;
  context.scale(scale, scale);
  for (const shape of shapes) {
    if (shape.kind === 'area' && shape.erases) {
      // Gets thinner, like a stroke that erases: its surroundings get wider.
      const around = shapesOf([inverted([{ ...shape, erases: false }], image)]);
      context.globalCompositeOperation = 'destination-in';
      context.drawImage(widened(around, image, by), 0, 0, image.x, image.y);
      continue;
    }
    context.globalCompositeOperation = shape.kind === 'erase' ? 'destination-out' : 'source-over';
    if (shape.kind === 'area') {
      const area = areaCanvas(shape, image);
      context.drawImage(area, 0, 0, image.x, image.y);
      for (let copy = 0; copy < COPIES; copy += 1) {
        const angle = (2 * Math.PI * copy) / COPIES;
        context.drawImage(area, by * Math.cos(angle), by * Math.sin(angle), image.x, image.y);
      }
      continue;
    }
    drawStroke(context, shape, by);
  }
  context.setTransform(1, 0, 0, 1, 0, 0);
  context.globalCompositeOperation = 'source-in';
  context.fillStyle = '#fff';
  context.fillRect(0, 0, canvas.width, canvas.height);
  return canvas;
}
