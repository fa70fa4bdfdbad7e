import { useEffect, useRef, useState } from 'react';
import type { ImageSize } from '@/lib/image-size';
import { type Box, fitView, moveBy, type Point, resize, type View, zoomAt } from './view';

const STEP = 1.5;

/** The frame's size and the view in it. */
export type Placement = { box: Box; view: View };

/** Keeps the view of an image in its frame. `placement` is null until the frame has been measured. */
export function useView(size: ImageSize) {
  const frame = useRef<HTMLDivElement>(null);
  const [placement, setPlacement] = useState<Placement | null>(null);
  const [control] = useState(() => new ViewControl({ x: size.x, y: size.y }, setPlacement));

  useEffect(() => {
    const element = frame.current;
    if (!element) return;
    const observer = new ResizeObserver(() => control.measure(element));
    observer.observe(element);
    return () => observer.disconnect();
  }, [control]);

  return { frame, placement, control };
}

/** Holds the view outside React: several pointer events arrive between two renders, and each builds on the last. */
export class ViewControl {
  private placement: Placement | null = null;

  constructor(
    readonly image: ImageSize,
    private readonly onChange: (placement: Placement) => void,
  ) {}

  measure({ clientWidth: width, clientHeight: height }: HTMLElement) {
    if (width === 0 || height === 0) return;
    const box = { width, height };
    const old = this.placement;
    this.place(box, old ? resize(old.view, old.box, box, this.image) : fitView(box, this.image));
  }

  get view(): View {
    return this.placement?.view ?? { scale: 1, x: 0, y: 0 };
  }

  get middle(): Point {
    const { width = 0, height = 0 } = this.placement?.box ?? {};
    return { x: width / 2, y: height / 2 };
  }

  get isFitted(): boolean {
    return !this.placement || this.view.scale <= fitView(this.placement.box, this.image).scale * 1.001;
  }

  zoom(factor: number, anchor = this.middle) {
    const box = this.placement?.box;
    if (box) this.place(box, zoomAt(this.view, factor, anchor, box, this.image));
  }

  move(dx: number, dy: number) {
    const box = this.placement?.box;
    if (box) this.place(box, moveBy(this.view, dx, dy, box, this.image));
  }

  zoomIn = () => this.zoom(STEP);
  zoomOut = () => this.zoom(1 / STEP);
  fit = () => this.placement && this.place(this.placement.box, fitView(this.placement.box, this.image));

  private place(box: Box, view: View) {
    this.placement = { box, view };
    this.onChange(this.placement);
  }
}
