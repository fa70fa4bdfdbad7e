import { describe, expect, test } from 'vitest';
import { fitView, moveBy, resize, toImage, zoomAt } from './view';

const image = { x: 1200, y: 800 };
const box = { width: 600, height: 600 };

describe('the view of an image in its frame', () => {
  test('starts with the whole image, centered', () => {
    expect(fitView(box, image)).toEqual({ scale: 0.5, x: 0, y: 100 });
    expect(fitView(box, { x: 100, y: 300 })).toEqual({ scale: 2, x: 200, y: 0 });
  });

  test('maps screen points to image points at any zoom', () => {
    const view = fitView(box, image);
    expect(toImage(view, { x: 300, y: 300 })).toEqual({ x: 600, y: 400 });
    expect(toImage(view, { x: 0, y: 100 })).toEqual({ x: 0, y: 0 });
    const anchor = { x: 450, y: 250 };
    const under = toImage(view, anchor);
    const zoomed = zoomAt(view, 3, anchor, box, image);
    expect(zoomed.scale).toBe(1.5);
    expect(toImage(zoomed, anchor).x).toBeCloseTo(under.x);
    expect(toImage(zoomed, anchor).y).toBeCloseTo(under.y);
  });

  test('zooms out to the whole image and in to sixteen screen pixels per image pixel', () => {
    const view = fitView(box, image);
    const middle = { x: 300, y: 300 };
    expect(zoomAt(view, 0.1, middle, box, image)).toEqual(view);
    expect(zoomAt(view, 1000, middle, box, image).scale).toBe(16);
    // A tiny image already exceeds that when fitted.
    expect(zoomAt(fitView(box, { x: 10, y: 10 }), 2, middle, box, { x: 10, y: 10 }).scale).toBe(60);
  });

  test('stops panning at the edges, and does not pan along a side that fits', () => {
    const zoomed = zoomAt(fitView(box, image), 4, { x: 300, y: 300 }, box, image);
    expect(moveBy(zoomed, 9999, 9999, box, image)).toMatchObject({ x: 0, y: 0 });
    expect(moveBy(zoomed, -9999, -9999, box, image)).toMatchObject({ x: 600 - 2400, y: 600 - 1600 });
    expect(moveBy(fitView(box, image), 50, 50, box, image)).toEqual(fitView(box, image));
  });

  test('shows the same part of the image in a smaller frame', () => {
    const zoomed = zoomAt(fitView(box, image), 4, { x: 200, y: 250 }, box, image);
    const before = toImage(zoomed, { x: 300, y: 300 });
    const narrow = { width: 300, height: 300 };
    const after = resize(zoomed, box, narrow, image);
    expect(after.scale).toBe(1);
    expect(toImage(after, { x: 150, y: 150 }).x).toBeCloseTo(before.x);
    expect(toImage(after, { x: 150, y: 150 }).y).toBeCloseTo(before.y);
    expect(resize(fitView(box, image), box, narrow, image)).toEqual(fitView(narrow, image));
  });
});
