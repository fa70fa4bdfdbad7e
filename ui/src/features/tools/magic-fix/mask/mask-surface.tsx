import { lazy, type RefObject, Suspense } from 'react';
import type { Image } from '@/lib/api-types';
import { classNames } from '@/lib/class-names';
import type { Shape, Stroke } from './marks';
import { useMaskStore } from './mask-store';
import { useDrawing } from './use-drawing';
import type { Placed, ViewControl } from './use-view';
import { useWheelZoom } from './use-wheel-zoom';

const MaskLayer = lazy(() => import('./mask-layer'));

/** From here on the pixels of the image are shown as the squares that they are. */
const SQUARES_FROM = 4;

type MaskSurfaceProps = {
  image: Image;
  shapes: Shape[];
  /** Whether the next stroke begins a new mask, and the old one gives way to it. */
  isSpent: boolean;
  frame: RefObject<HTMLDivElement | null>;
  placed: Placed | null;
  control: ViewControl;
  isSpaceDown: RefObject<boolean>;
  onStroke: (stroke: Stroke) => void;
  /** Shown in place of the image and its mask, to compare. */
  instead: string | null;
};

const nothing: Shape[] = [];

/** The image with its mask over it, and whatever points at it. */
export function MaskSurface(props: MaskSurfaceProps) {
  const { image, shapes, isSpent, frame, placed, control, isSpaceDown, onStroke, instead } = props;
  const { brush, brushSize } = useMaskStore();
  const { draft, ring, handlers } = useDrawing(control, isSpaceDown, onStroke);
  useWheelZoom(frame, control);
  const shown = isSpent && draft?.kind === 'paint' ? nothing : shapes;

  return (
    <div
      ref={frame}
      role="application"
      // biome-ignore lint/a11y/noNoninteractiveTabindex: it is drawn on, by keyboard too.
      tabIndex={0}
      aria-label="Image to draw on"
      aria-describedby="drawing-help"
      onContextMenu={(event) => event.preventDefault()}
      {...handlers}
      className={classNames(
        'absolute inset-0 touch-none overflow-hidden rounded-lg select-none [-webkit-touch-callout:none] -outline-offset-2!',
        brush === 'move' ? 'cursor-grab active:cursor-grabbing' : 'cursor-crosshair pointer-fine:cursor-none',
        'group-data-moving/editor:cursor-grab',
      )}
    >
      {placed && (
        <>
          <img
            src={instead ?? image.url}
            alt=""
            draggable={false}
            className="checkerboard pointer-events-none absolute max-w-none"
            style={{
              left: placed.view.x,
              top: placed.view.y,
              width: image.x * placed.view.scale,
              height: image.y * placed.view.scale,
              imageRendering: placed.view.scale >= SQUARES_FROM ? 'pixelated' : undefined,
            }}
          />
          {!instead && (
            <Suspense>
              <MaskLayer image={image} shapes={shown} draft={draft} {...placed} />
            </Suspense>
          )}
        </>
      )}
      <div
        ref={ring}
        hidden
        data-ring
        className={classNames(
          'pointer-events-none absolute top-0 left-0 rounded-full border-[1.5px] border-white shadow-[0_0_0_1.5px_rgb(0_0_0/0.7),inset_0_0_0_1px_rgb(0_0_0/0.45)]',
          brush === 'move' && 'invisible',
          brush === 'erase' && 'border-dashed',
          'group-data-moving/editor:invisible',
        )}
        style={{ width: brushSize, height: brushSize, margin: -brushSize / 2 }}
      />
    </div>
  );
}
