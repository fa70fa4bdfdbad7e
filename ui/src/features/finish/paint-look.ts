import type { Stroke } from '@/features/mask/marks';
import type { ImageSize } from '@/lib/image-size';
import { readableCanvas } from '@/lib/readable-canvas';
import { boxOfSubject, cropBox, type Rectangle } from './crop-box';
import type { Background, Gradient, Look } from './look';
import { type CutoutPictures, paintCutout } from './paint-cutout';

type LookPictures = CutoutPictures & { picture: HTMLImageElement | null };

/** The longer side of the preview, in pixels. */
const MAX_SIDE = 1200;

/**
 * Draws the finished cutout, smaller than the file will be. Approximate where the file is exact: the subject's edge is
 * found in the smaller picture, and browsers blur a little differently from the server.
 */
export function paintLook(
  canvas: HTMLCanvasElement,
  pictures: LookPictures,
  { background, shadow, crop }: Look,
  strokes: Stroke[],
  size: ImageSize,
) {
  const scale = Math.min(1, MAX_SIDE / Math.max(size.x, size.y));
  const layer = readableCanvas(size.x * scale, size.y * scale);
  layer.context.scale(scale, scale);
  paintCutout(layer.context, pictures, strokes, size);
  const { width, height } = layer.canvas;
  const { data } = layer.context.getImageData(0, 0, width, height);
  const whole = { x: 0, y: 0, width, height };
  // Without a subject there is nothing to crop to.
  const subject = boxOfSubject(data, width, height);
  const box = crop && subject ? cropBox(subject, crop) : whole;

  canvas.width = Math.max(1, Math.round(box.width));
  canvas.height = Math.max(1, Math.round(box.height));
  const context = canvas.getContext('2d');
  if (!context) return;
  paintBackground(context, background, pictures, box, layer.canvas);
  if (shadow && subject) {
    const unit = Math.max(subject.width, subject.height) / 100;
    context.shadowColor = `rgb(0 0 0 / ${shadow.opacity})`;
    // Twice the standard deviation, as the HTML standard defines it.
    context.shadowBlur = 2 * shadow.blur * unit;
    context.shadowOffsetX = shadow.x * unit;
    context.shadowOffsetY = shadow.y * unit;
    context.drawImage(layer.canvas, -box.x, -box.y);
    context.shadowColor = 'transparent';
  }
  if (!shadow || !subject) context.drawImage(layer.canvas, -box.x, -box.y);
}

function paintBackground(
  context: CanvasRenderingContext2D,
  background: Background | null,
  { original, picture }: LookPictures,
  box: Rectangle,
  whole: { width: number; height: number },
) {
  if (!background) return;
  const { width, height } = context.canvas;
  if ('color' in background) {
    context.fillStyle = background.color;
    context.fillRect(0, 0, width, height);
  } else if ('gradient' in background) {
    context.fillStyle = gradientOf(context, background.gradient);
    context.fillRect(0, 0, width, height);
  } else if ('picture' in background) {
    if (picture) cover(context, picture);
  } else if (original) {
    const deviation = (background.blur / 100) * Math.max(whole.width, whole.height);
    mirror(context, blurred(original, whole, deviation), box, whole);
  }
}

/** The gradient of CSS `linear-gradient`: its line is as long as the corners need. */
function gradientOf(context: CanvasRenderingContext2D, { from, to, angle }: Gradient): CanvasGradient {
  const { width, height } = context.canvas;
  const [sin, cos] = [Math.sin((angle * Math.PI) / 180), Math.cos((angle * Math.PI) / 180)];
  const half = (Math.abs(width * sin) + Math.abs(height * cos)) / 2;
  const [x, y] = [width / 2, height / 2];
  const gradient = context.createLinearGradient(
    x - sin * half,
    y + cos * half,
    x + sin * half,
    y - cos * half,
  );
  gradient.addColorStop(0, from);
  gradient.addColorStop(1, to);
  return gradient;
}

/** Fills the canvas like CSS `object-fit: cover`. */
function cover(context: CanvasRenderingContext2D, picture: HTMLImageElement) {
  const { width, height } = context.canvas;
  const scale = Math.max(width / picture.naturalWidth, height / picture.naturalHeight);
  const [drawnWidth, drawnHeight] = [picture.naturalWidth * scale, picture.naturalHeight * scale];
  context.drawImage(picture, (width - drawnWidth) / 2, (height - drawnHeight) / 2, drawnWidth, drawnHeight);
}

/** Draws the whole picture where it is, and mirrored beyond its border. */
function mirror(
  context: CanvasRenderingContext2D,
  picture: HTMLCanvasElement,
  box: Rectangle,
  { width, height }: { width: number; height: number },
) {
  const across = [Math.floor(box.x / width), Math.floor((box.x + box.width) / width)] as const;
  const down = [Math.floor(box.y / height), Math.floor((box.y + box.height) / height)] as const;
  for (let row = down[0]; row <= down[1]; row += 1) {
    for (let column = across[0]; column <= across[1]; column += 1) {
      const [flipsX, flipsY] = [column % 2 !== 0, row % 2 !== 0];
      context.save();
      context.translate(
        (column + (flipsX ? 1 : 0)) * width - box.x,
        (row + (flipsY ? 1 : 0)) * height - box.y,
      );
      context.scale(flipsX ? -1 : 1, flipsY ? -1 : 1);
      context.drawImage(picture, 0, 0, width, height);
      context.restore();
    }
  }
}

/** Blurs by shrinking and enlarging again, which every browser can do and which does not fade at the edges. */
function blurred(
  picture: HTMLImageElement,
  { width, height }: { width: number; height: number },
  deviation: number,
): HTMLCanvasElement {
  let last = readableCanvas(width, height);
  // The server puts a transparent picture on gray, too.
  last.context.fillStyle = '#808080';
  last.context.fillRect(0, 0, last.canvas.width, last.canvas.height);
  last.context.drawImage(picture, 0, 0, width, height);
  // Each halving and doubling blurs about as much as a Gaussian of the new pixel's width.
  for (let step = 1; step < deviation && Math.min(last.canvas.width, last.canvas.height) > 4; step *= 2) {
    last = scaled(last.canvas, last.canvas.width / 2, last.canvas.height / 2);
  }
  while (last.canvas.width < width) last = scaled(last.canvas, last.canvas.width * 2, last.canvas.height * 2);
  return last.canvas;
}

function scaled(source: HTMLCanvasElement, width: number, height: number) {
  const next = readableCanvas(width, height);
  next.context.imageSmoothingQuality = 'high';
  next.context.drawImage(source, 0, 0, next.canvas.width, next.canvas.height);
  return next;
}
