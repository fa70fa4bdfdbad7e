import { useEffect, useRef, useState } from 'react';
import { createGestures } from '@/components/pan-zoom/gestures';
import { PlacedImage } from '@/components/pan-zoom/placed-image';
import { useView } from '@/components/pan-zoom/use-view';
import { useWheelZoom } from '@/components/pan-zoom/use-wheel-zoom';
import { t } from '@/lib/translate';
import { actualScale, handleZoomKey, ZoomBar } from './zoom-bar';
import { zoomHandlers } from './zoom-handlers';

type ZoomViewProps = {
  url: string;
  alt: string;
  width: number;
  height: number;
  /** CSS `background` behind a transparent picture. */
  background?: string;
  onLeave: () => void;
};

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

  return (
    <>
      <div
        ref={frame}
        role="application"
        // biome-ignore lint/a11y/noNoninteractiveTabindex: the user can also move the picture with the keyboard.
        tabIndex={0}
        aria-label={t('{alt}, enlarged: plus and minus zoom, arrow keys pan, Escape closes', { alt })}
        {...zoomHandlers(control, gestures)}
        onKeyDown={(event) => handleZoomKey(event, control, onLeave)}
        className="absolute inset-0 row-start-1 row-end-2 touch-none cursor-grab overflow-hidden rounded-lg bg-sunken select-none -outline-offset-2! active:cursor-grabbing"
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
      <ZoomBar control={control} placement={placement} />
    </>
  );
}
