import { type RefObject, useEffect } from 'react';
import { pointOf } from './pointer';
import type { ViewControl } from './use-view';

const WHEEL_SPEED = 0.0015;

/**
 * The wheel zooms once the frame has been pressed, and always with Ctrl, which is also how a trackpad's pinch
 * arrives. Until then, and at the end of the zoom, it scrolls the page: nobody gets stuck over the image.
 */
export function useWheelZoom(frame: RefObject<HTMLElement | null>, control: ViewControl) {
  useEffect(() => {
    const element = frame.current;
    if (!element) return;
    const zoom = (event: WheelEvent) => {
      const isMeant = event.ctrlKey || event.metaKey || element.contains(document.activeElement);
      if (!isMeant || (control.isFitted && event.deltaY > 0 && !event.ctrlKey)) return;
      event.preventDefault();
      const speed = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? WHEEL_SPEED * 16 : WHEEL_SPEED;
      // A pinch comes in much smaller steps than a wheel.
      const factor = Math.exp(-event.deltaY * (event.ctrlKey ? speed * 5 : speed));
      control.zoom(Math.min(2, Math.max(0.5, factor)), pointOf(event, element));
    };
    // React's own listener is passive and could not keep the page from scrolling.
    element.addEventListener('wheel', zoom, { passive: false });
    return () => element.removeEventListener('wheel', zoom);
  }, [frame, control]);
}
