import { useEffect, useRef, useState } from 'react';
import type { ImageSize } from '@/lib/image-size';
import { type Box, fitView, moveBy, type Point, resize, type View, zoomAt } from './view';

const STEP = 1.5;

export type Placed = { box: Box; view: View };

/** How the image lies in its frame, kept sensible while the frame changes its size. */
export function useView(size: ImageSize) {
  const frame = useRef<HTMLDivElement>(null);
  const [placed, setPlaced] = useState<Placed | null>(null);
  const [control] = useState(() => new ViewControl({ x: size.x, y: size.y }, setPlaced));

  useEffect(() => {
    const element = frame.current;
    if (!element) return;
    const observer = new ResizeObserver(() => control.measure(element));
    observer.observe(element);
    return () => observer.disconnect();
  }, [control]);

  return { frame, placed, control };
}

/** Several pointer events come between two renders, and each goes on from the last: so this remembers. */
export class ViewControl {
  private placed: Placed | null = null;

  constructor(
    readonly image: ImageSize,
    private readonly onPlaced: (placed: Placed) => void,
  ) {}

  measure({ clientWidth: width, clientHeight: height }: HTMLElement) {
    if (width === 0 || height === 0) return;
    const box = { width, height };
    const old = this.placed;
    this.place(box, old ? resize(old.view, old.box, box, this.image) : fitView(box, this.image));
  }

  get view(): View {
    return this.placed?.view ?? { scale: 1, x: 0, y: 0 };
  }

  get middle(): Point {
    const { width = 0, height = 0 } = this.placed?.box ?? {};
    return { x: width / 2, y: height / 2 };
  }

  get isFitted(): boolean {
    return !this.placed || this.view.scale <= fitView(this.placed.box, this.image).scale * 1.001;
  }

  zoom(factor: number, anchor = this.middle) {
    const box = this.placed?.box;
    if (box) this.place(box, zoomAt(this.view, factor, anchor, box, this.image));
  }

  move(dx: number, dy: number) {
    const box = this.placed?.box;
    if (box) this.place(box, moveBy(this.view, dx, dy, box, this.image));
  }

  zoomIn = () => this.zoom(STEP);
  zoomOut = () => this.zoom(1 / STEP);
  fit = () => this.placed && this.place(this.placed.box, fitView(this.placed.box, this.image));

  private place(box: Box, view: View) {
    this.placed = { box, view };
    this.onPlaced(this.placed);
  }
}
