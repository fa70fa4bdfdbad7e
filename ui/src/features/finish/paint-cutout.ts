import type { Stroke } from '@/features/mask/marks';
import type { ImageSize } from '@/lib/image-size';
import { softLayers } from './soft-brush';

/** The cutout and, if strokes restore from it, its original. Either may be a smaller copy. */
export type CutoutPictures = { cutout: HTMLImageElement; original: HTMLImageElement | null };

/**
 * Draws the cutout with its touch-up, in pixels of the result: the context's transform decides where. Where soft rims
 * of different strokes overlap, the file may differ by a shade: it has one value per pixel.
 */
export function paintCutout(
  context: CanvasRenderingContext2D,
  { cutout, original }: CutoutPictures,
  strokes: Stroke[],
  size: ImageSize,
) {
  context.globalCompositeOperation = 'source-over';
  context.globalAlpha = 1;
  context.drawImage(cutout, 0, 0, size.x, size.y);
  if (strokes.length === 0) return;
  context.lineCap = 'round';
  context.lineJoin = 'round';
  const restored = original && patternOf(context, original, size);
  for (const stroke of strokes) {
    const isErased = stroke.kind === 'erase';
    if (!isErased && !restored) continue;
    context.globalCompositeOperation = isErased ? 'destination-out' : 'source-over';
    context.strokeStyle = isErased || !restored ? '#000' : restored;
    for (const { width, opacity } of softLayers(stroke.size)) {
      context.globalAlpha = opacity;
      context.lineWidth = width;
      context.stroke(pathOf(stroke));
    }
  }
  context.globalCompositeOperation = 'source-over';
  context.globalAlpha = 1;
}

function patternOf(context: CanvasRenderingContext2D, picture: HTMLImageElement, size: ImageSize) {
  const pattern = context.createPattern(picture, 'no-repeat');
  pattern?.setTransform(new DOMMatrix().scale(size.x / picture.naturalWidth, size.y / picture.naturalHeight));
  return pattern;
}

function pathOf({ points }: Stroke): Path2D {
  const path = new Path2D();
  const [x = 0, y = 0] = points;
  path.moveTo(x, y);
  // A line of length zero draws nothing.
  path.lineTo(x + 0.01, y);
  for (let at = 2; at + 1 < points.length; at += 2) path.lineTo(points[at] ?? 0, points[at + 1] ?? 0);
  return path;
}
