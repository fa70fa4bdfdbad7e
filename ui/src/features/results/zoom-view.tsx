import { type KeyboardEvent, type PointerEvent, useEffect, useRef, useState } from 'react';
import { createGestures } from '@/components/pan-zoom/gestures';
import { PlacedImage } from '@/components/pan-zoom/placed-image';
import { capturePointer, pointIn, toPointer } from '@/components/pan-zoom/pointer';
import { useView, type ViewControl } from '@/components/pan-zoom/use-view';
import { useWheelZoom } from '@/components/pan-zoom/use-wheel-zoom';
import { ZoomControls } from '@/components/pan-zoom/zoom-controls';

type ZoomViewProps = {
  url: string;
  alt: string;
  width: number;
  height: number;
  /** CSS `background` behind a transparent picture. */
  background?: string;
  onLeave: () => void;
};

/** Screen pixels per press of an arrow key. */
const KEY_STEP = 48;

/** An enlarged picture. Wheel, pinch, keys and buttons zoom; dragging pans. */
export default function ZoomView({ url, alt, width, height, background, onLeave }: ZoomViewProps) {
  const { frame, placement, control } = useView({ x: width, y: height });
  const [gestures] = useState(() => createGestures(control));
  useWheelZoom(frame, control);

  // Starts at actual pixels, or at twice the fitted size if that is larger.
  const hasStarted = useRef(false);
  useEffect(() => {
    if (!placement || hasStarted.current) return;
    hasStarted.current = true;
    frame.current?.focus({ preventScroll: true });
    control.zoom(Math.max(2, actualScale() / placement.view.scale));
  }, [placement, control, frame]);

  function press(event: PointerEvent<HTMLElement>) {
    capturePointer(event);
    gestures.press(toPointer(event));
  }

  function handleKey(event: KeyboardEvent) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const action = event.key === 'Escape' ? onLeave : keyActions(control)[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  }

  const scale = placement?.view.scale ?? 1;
  return (
    <>
      <div
        ref={frame}
        role="application"
        // biome-ignore lint/a11y/noNoninteractiveTabindex: the user can also move the picture with the keyboard.
        tabIndex={0}
        aria-label={`${alt}, enlarged: plus and minus zoom, arrow keys pan, Escape closes`}
        onPointerDown={press}
        onPointerMove={(event) => gestures.move(toPointer(event))}
        onPointerUp={({ pointerId }) => gestures.release({ id: pointerId })}
        onPointerCancel={({ pointerId }) => gestures.cancel({ id: pointerId })}
        onDoubleClick={(event) => control.zoom(2, pointIn(event.currentTarget, event))}
        onKeyDown={handleKey}
        className="absolute inset-0 touch-none cursor-grab overflow-hidden rounded-lg select-none -outline-offset-2! active:cursor-grabbing"
      >
        {placement && (
          <PlacedImage
            src={url}
            size={{ x: width, y: height }}
            view={placement.view}
            background={background}
          />
        )}
      </div>
      {/* biome-ignore lint/a11y/useSemanticElements: buttons are not a form. */}
      <div
        role="group"
        aria-label="Zoom"
        className="absolute top-3 right-3 flex items-center rounded-md border border-line bg-surface p-0.5 shadow-raised"
      >
        <ZoomControls
          control={control}
          level={
            <span className="min-w-12 text-center text-sm tabular-nums" role="status">
              {`${Math.round((scale / actualScale()) * 100)}%`}
            </span>
          }
        >
          <button
            type="button"
            title="Actual pixels (1)"
            onClick={() => zoomToActual(control)}
            className="min-h-10 thumb:min-h-11 rounded-sm px-2 text-sm font-medium tabular-nums hover:bg-sunken"
          >
            1:1
          </button>
        </ZoomControls>
      </div>
    </>
  );
}

function keyActions(control: ViewControl): Record<string, () => void> {
  return {
    '+': control.zoomIn,
    '=': control.zoomIn,
    '-': control.zoomOut,
    '0': control.fit,
    '1': () => zoomToActual(control),
    ArrowLeft: () => control.move(KEY_STEP, 0),
    ArrowRight: () => control.move(-KEY_STEP, 0),
    ArrowUp: () => control.move(0, KEY_STEP),
    ArrowDown: () => control.move(0, -KEY_STEP),
  };
}

function zoomToActual(control: ViewControl) {
  control.zoom(actualScale() / control.view.scale);
}

/** The scale in CSS pixels at which one image pixel covers one screen pixel. */
function actualScale(): number {
  return 1 / (window.devicePixelRatio || 1);
}
