import { expect, test, vi } from 'vitest';
import { areaCanvas } from './area-canvas';
import type { Area } from './marks';

test('an area is drawn once, for the mask and for the line around it', () => {
  const context = { fillRect: vi.fn() };
  vi.spyOn(HTMLCanvasElement.prototype, 'getContext').mockReturnValue(context as unknown as null);
  const area: Area = { kind: 'area', spans: [0, 0, 3] };
  const canvas = areaCanvas(area, { x: 10, y: 10 });
  expect(areaCanvas(area, { x: 10, y: 10 })).toBe(canvas);
  expect(context.fillRect).toHaveBeenCalledOnce();
});
