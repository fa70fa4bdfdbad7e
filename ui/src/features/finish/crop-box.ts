import type { Crop } from './look';

export type Rectangle = { x: number; y: number; width: number; height: number };

/** The least alpha of a visible pixel, as on the server. */
const FAINTEST = 5;

/** The part of the picture that a crop keeps: the subject with a margin, enlarged to the aspect around its center. */
export function cropBox(subject: Rectangle, { margin, aspect }: Crop): Rectangle {
  const space = (Math.max(subject.width, subject.height) * margin) / 100;
  let width = subject.width + 2 * space;
  let height = subject.height + 2 * space;
  const [across = 0, down = 0] = aspect?.split(':').map(Number) ?? [];
  if (across > 0 && down > 0) {
    const ratio = across / down;
    width = Math.max(width, height * ratio);
    height = Math.max(height, width / ratio);
  }
  return {
    x: subject.x + (subject.width - width) / 2,
    y: subject.y + (subject.height - height) / 2,
    width,
    height,
  };
}

/** The smallest box around all visible pixels; null if there are none. `data` is RGBA. */
export function boxOfSubject(data: Uint8ClampedArray, width: number, height: number): Rectangle | null {
  let [left, top, right, bottom] = [width, height, -1, -1];
  for (let y = 0; y < height; y += 1) {
    for (let x = 0; x < width; x += 1) {
      if ((data[(y * width + x) * 4 + 3] ?? 0) < FAINTEST) continue;
      left = Math.min(left, x);
      right = Math.max(right, x);
      top = Math.min(top, y);
      bottom = y;
    }
  }
  return right < 0 ? null : { x: left, y: top, width: right - left + 1, height: bottom - top + 1 };
}
