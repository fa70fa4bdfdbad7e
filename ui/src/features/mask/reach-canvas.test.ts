import { beforeEach, expect, test, vi } from 'vitest';
import type { Shape } from './marks';
import { reachCanvas } from './reach-canvas';

const SIDE = 40;
const IMAGE = { x: SIDE, y: SIDE };

const canvases = new WeakMap<HTMLCanvasElement, ReturnType<typeof aContext>>();

/** What jsdom lacks: a context of `SIDE` × `SIDE` opaque or transparent pixels that knows whole pixels only. */
function aContext() {
  const pixels = new Set<number>();
  const context = {
    pixels,
    globalCompositeOperation: 'source-over',
    scale() {},
    setTransform() {},
    fillRect(left: number, top: number, width: number, height: number) {
      const drawn = new Set<number>();
      for (let y = top; y < top + height; y += 1) {
        for (let x = left; x < left + width; x += 1) drawn.add(y * SIDE + x);
      }
      compose(drawn);
    },
    drawImage(canvas: HTMLCanvasElement, left: number, top: number) {
      const drawn = new Set<number>();
      for (const pixel of canvases.get(canvas)?.pixels ?? []) {
        const [x, y] = [(pixel % SIDE) + Math.round(left), Math.floor(pixel / SIDE) + Math.round(top)];
        if (x >= 0 && x < SIDE && y >= 0 && y < SIDE) drawn.add(y * SIDE + x);
      }
      compose(drawn);
    },
  };
  function compose(drawn: Set<number>) {
    const before = new Set(pixels);
    pixels.clear();
    for (let pixel = 0; pixel < SIDE * SIDE; pixel += 1) {
      const [old, added] = [before.has(pixel), drawn.has(pixel)];
      const isOpaque = {
        'source-over': old || added,
        'source-in': old && added,
        'destination-in': old && added,
        'destination-out': old && !added,
      }[context.globalCompositeOperation];
      if (isOpaque) pixels.add(pixel);
    }
  }
  return context;
}

beforeEach(() => {
  vi.spyOn(HTMLCanvasElement.prototype, 'getContext').mockImplementation(function (this: HTMLCanvasElement) {
    const context = canvases.get(this) ?? aContext();
    canvases.set(this, context);
    return context as unknown as null;
  });
});

/** The area between two columns and two rows. */
function area(left: number, right: number, top: number, bottom: number, erases = false): Shape {
  const rows = Array.from({ length: bottom - top }, (_, row) => [top + row, left, right]);
  return { kind: 'area', spans: rows.flat(), erases };
}

/** The columns of the line in the middle row. */
function lineOf(...shapes: Shape[]) {
  const { pixels } = canvases.get(reachCanvas(shapes, IMAGE, 4, 2)) ?? aContext();
  return Array.from({ length: SIDE }, (_, x) => x).filter((x) => pixels.has((SIDE / 2) * SIDE + x));
}

test('the line surrounds what an area that takes away has left, as if only that had been marked', () => {
  const left = lineOf(area(10, 20, 10, 30));
  expect(left).toEqual([5, 6, 23, 24]);
  expect(lineOf(area(10, 30, 10, 30), area(20, 40, 0, 40, true))).toEqual(left);
});

test('the line surrounds what is marked again after an area took it away', () => {
  const again = area(18, 24, 16, 26);
  expect(lineOf(area(10, 30, 10, 30), area(0, 40, 0, 40, true), again)).toEqual(lineOf(again));
});
