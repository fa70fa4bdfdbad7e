import type { ImageSize } from '@/lib/image-size';

export type Point = { x: number; y: number };
export type Box = { width: number; height: number };

/** Where the image lies in its frame: `scale` screen pixels per image pixel, top left corner at x, y. */
export type View = { scale: number; x: number; y: number };

/** Screen pixels per image pixel. */
const MAX_SCALE = 16;

/** The whole image, as large as possible, centered. */
export function fitView(box: Box, image: ImageSize): View {
  const scale = Math.min(box.width / image.x, box.height / image.y);
  return centered(scale, box, image);
}

/** Converts a point in the frame to a point in the image. */
export function toImage(view: View, { x, y }: Point): Point {
  return { x: (x - view.x) / view.scale, y: (y - view.y) / view.scale };
}

/** Zooms by `factor` and keeps the image point under `anchor` in place. */
export function zoomAt(view: View, factor: number, anchor: Point, box: Box, image: ImageSize): View {
  const minScale = fitView(box, image).scale;
  const scale = Math.min(Math.max(view.scale * factor, minScale), Math.max(MAX_SCALE, minScale));
  const under = toImage(view, anchor);
  return keepInside({ scale, x: anchor.x - under.x * scale, y: anchor.y - under.y * scale }, box, image);
}

export function moveBy(view: View, dx: number, dy: number, box: Box, image: ImageSize): View {
  return keepInside({ ...view, x: view.x + dx, y: view.y + dy }, box, image);
}

/** Keeps the same part of the image visible when the frame changes its size. */
export function resize(view: View, from: Box, to: Box, image: ImageSize): View {
  const before = fitView(from, image).scale;
  const middle = toImage(view, { x: from.width / 2, y: from.height / 2 });
  const scale = (view.scale / before) * fitView(to, image).scale;
  return keepInside(
    { scale, x: to.width / 2 - middle.x * scale, y: to.height / 2 - middle.y * scale },
    to,
    image,
  );
}

/** Leaves no gap at an edge of the frame that the image could fill. */
function keepInside(view: View, box: Box, image: ImageSize): View {
  const center = centered(view.scale, box, image);
  const clamp = (offset: number, room: number, length: number, centeredOffset: number) =>
    length <= room ? centeredOffset : Math.min(0, Math.max(room - length, offset));
  return {
    scale: view.scale,
    x: clamp(view.x, box.width, image.x * view.scale, center.x),
    y: clamp(view.y, box.height, image.y * view.scale, center.y),
  };
}

function centered(scale: number, box: Box, image: ImageSize): View {
  return { scale, x: (box.width - image.x * scale) / 2, y: (box.height - image.y * scale) / 2 };
}
