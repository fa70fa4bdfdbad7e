import { vi } from 'vitest';

/** Gives every element 600 × 400 px, so that an image of 1200 × 800 px is fitted at half its size. jsdom lays out nothing. */
export function stubFrame() {
  vi.spyOn(HTMLElement.prototype, 'clientWidth', 'get').mockReturnValue(600);
  vi.spyOn(HTMLElement.prototype, 'clientHeight', 'get').mockReturnValue(400);
  vi.stubGlobal(
    'ResizeObserver',
    class {
      constructor(private readonly onResize: () => void) {}
      observe() {
        this.onResize();
      }
      disconnect() {}
    },
  );
}
