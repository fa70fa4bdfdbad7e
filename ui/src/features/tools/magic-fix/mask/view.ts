import type { ImageSize } from '@/lib/image-size';

export type Point = { x: number; y: number };
export type Box = { width: number; height: number };

/** How the image lies in its frame: `scale` screen pixels for each of its own, its corner at x, y. */
export type View = { scale: number; x: number; y: number };

/** The most screen pixels that one pixel of the image gets. */
const MAX_SCALE = 16;

/** All of the image, as large as it fits, in the middle. */
export function fitView(box: Box, image: ImageSize): View {
  const scale = Math.min(box.width / image.x, box.height / image.y);
  return centred(scale, box, image);
}

export function toImage(view: View, { x, y }: Point): Point {
  return { x: (x - view.x) / view.scale, y: (y - view.y) / view.scale };
}

/** Larger or smaller by a factor; what lies under `anchor` stays there. */
export function zoomAt(view: View, factor: number, anchor: Point, box: Box, image: ImageSize): View {
  const least = fitView(box, image).scale;
  const scale = Math.min(Math.max(view.scale * factor, least), Math.max(MAX_SCALE, least));
  const under = toImage(view, anchor);
  return keepInside({ scale, x: anchor.x - under.x * scale, y: anchor.y - under.y * scale }, box, image);
}

export function moveBy(view: View, dx: number, dy: number, box: Box, image: ImageSize): View {
  return keepInside({ ...view, x: view.x + dx, y: view.y + dy }, box, image);
}

/** The same part of the image in a frame of another size. */
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

/** No side of the frame stays empty while the image could fill it. */
function keepInside(view: View, box: Box, image: ImageSize): View {
  const middle = centred(view.scale, box, image);
  const clamp = (place: number, room: number, length: number, central: number) =>
    length <= room ? central : Math.min(0, Math.max(room - length, place));
  return {
    scale: view.scale,
    x: clamp(view.x, box.width, image.x * view.scale, middle.x),
    y: clamp(view.y, box.height, image.y * view.scale, middle.y),
  };
}

function centred(scale: number, box: Box, image: ImageSize): View {
  return { scale, x: (box.width - image.x * scale) / 2, y: (box.height - image.y * scale) / 2 };
}
