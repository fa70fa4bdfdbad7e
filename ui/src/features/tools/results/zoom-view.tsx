import { type KeyboardEvent, type PointerEvent, useEffect, useRef, useState } from 'react';
import { createGestures } from '../magic-fix/mask/gestures';
import { capture, pointerOf, pointOf } from '../magic-fix/mask/pointer';
import { useView, type ViewControl } from '../magic-fix/mask/use-view';
import { useWheelZoom } from '../magic-fix/mask/use-wheel-zoom';
import { ToolButton } from '../magic-fix/tool-button';

type ZoomViewProps = {
  url: string;
  alt: string;
  width: number;
  height: number;
  /** What lies behind it, where it is transparent. */
  background?: string;
  onLeave: () => void;
};

/** Screen pixels that an arrow key moves the picture. */
const KEY_STEP = 48;
/** From here on the pixels of the picture are shown as the squares that they are. */
const SQUARES_FROM = 4;

/** A closer look: wheel, pinch, keys and buttons zoom, whatever drags moves. */
export default function ZoomView({ url, alt, width, height, background, onLeave }: ZoomViewProps) {
  const { frame, placed, control } = useView({ x: width, y: height });
  const [gestures] = useState(() => createGestures({ ...nothingToDraw, control }));
  useWheelZoom(frame, control);

  // Whoever asks for a closer look gets one: each pixel as one of the screen, or at least twice the size.
  const hasBegun = useRef(false);
  useEffect(() => {
    if (!placed || hasBegun.current) return;
    hasBegun.current = true;
    frame.current?.focus({ preventScroll: true });
    control.zoom(Math.max(2, oneToOne() / placed.view.scale));
  }, [placed, control, frame]);

  function press(event: PointerEvent<HTMLElement>) {
    capture(event);
    gestures.press(pointerOf(event));
  }

  function key(event: KeyboardEvent) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const act = event.key === 'Escape' ? onLeave : keys(control)[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  }

  const scale = placed?.view.scale ?? 1;
  return (
    <>
      <div
        ref={frame}
        role="application"
        // biome-ignore lint/a11y/noNoninteractiveTabindex: it is moved by keyboard too.
        tabIndex={0}
        aria-label={`${alt}, enlarged: plus and minus zoom, arrow keys move, Escape ends`}
        onPointerDown={press}
        onPointerMove={(event) => gestures.move(pointerOf(event))}
        onPointerUp={({ pointerId }) => gestures.release({ id: pointerId })}
        onPointerCancel={({ pointerId }) => gestures.cancel({ id: pointerId })}
        onDoubleClick={(event) => control.zoom(2, pointOf(event, event.currentTarget))}
        onKeyDown={key}
        className="absolute inset-0 touch-none cursor-grab overflow-hidden rounded-lg select-none -outline-offset-2! active:cursor-grabbing"
      >
        {placed && (
          <img
            src={url}
            alt=""
            draggable={false}
            className="checkerboard pointer-events-none absolute max-w-none"
            style={{
              background,
              left: placed.view.x,
              top: placed.view.y,
              width: width * scale,
              height: height * scale,
              imageRendering: scale >= SQUARES_FROM ? 'pixelated' : undefined,
            }}
          />
        )}
      </div>
      {/* biome-ignore lint/a11y/useSemanticElements: four buttons are no form. */}
      <div
        role="group"
        aria-label="Zoom"
        className="absolute top-3 right-3 flex items-center rounded-md border border-line bg-surface p-0.5 shadow-raised"
      >
        <ToolButton icon="zoomOut" label="Zoom out" disabled={control.isFitted} onClick={control.zoomOut} />
        <span className="min-w-12 text-center text-sm tabular-nums" role="status">
          {`${Math.round((scale / oneToOne()) * 100)}%`}
        </span>
        <ToolButton icon="zoomIn" label="Zoom in" onClick={control.zoomIn} />
        <button
          type="button"
          title="Each pixel as one of the screen (1)"
          onClick={() => showPixels(control)}
          className="min-h-10 thumb:min-h-11 rounded-sm px-2 text-sm font-medium tabular-nums hover:bg-sunken"
        >
          1:1
        </button>
        <ToolButton
          icon="fit"
          label="Fit"
          title="Fit (0)"
          disabled={control.isFitted}
          onClick={control.fit}
        />
      </div>
    </>
  );
}

/** The gestures of the mask editor, of which only those that move and zoom are wanted. */
const nothingToDraw = {
  brush: () => ({ kind: 'paint' as const, size: 0 }),
  isMoving: () => true,
  setDraft: () => {},
  commit: () => {},
};

function keys(control: ViewControl): Record<string, () => void> {
  return {
    '+': control.zoomIn,
    '=': control.zoomIn,
    '-': control.zoomOut,
    '0': control.fit,
    '1': () => showPixels(control),
    ArrowLeft: () => control.move(KEY_STEP, 0),
    ArrowRight: () => control.move(-KEY_STEP, 0),
    ArrowUp: () => control.move(0, KEY_STEP),
    ArrowDown: () => control.move(0, -KEY_STEP),
  };
}

function showPixels(control: ViewControl) {
  control.zoom(oneToOne() / control.view.scale);
}

/** The scale at which a pixel of the picture is one of the screen. */
function oneToOne(): number {
  return 1 / (window.devicePixelRatio || 1);
}
