import { type RefObject, useEffect } from 'react';
import { pointIn } from './pointer';
import type { ViewControl } from './use-view';

const WHEEL_SPEED = 0.0015;
/** Pixels per line, for browsers that report the wheel in lines. */
const LINE_PX = 16;
/** A trackpad pinch sends much smaller steps than a wheel. */
const PINCH_BOOST = 5;

/** How Safari on a Mac reports a trackpad pinch. `scale` counts from the start of the pinch. */
type PinchEvent = Event & { scale: number; clientX: number; clientY: number };

/**
 * The wheel zooms while the area has the focus. With Ctrl it always zooms; most browsers report a trackpad pinch as a
 * wheel with Ctrl. Otherwise, and when it would zoom out of a fitted image, it scrolls the page, so that nobody gets
 * stuck over the image.
 *
 * The area is the frame of the image, or contains several frames with `data-frame`, which show it at the same zoom.
 */
export function useWheelZoom(area: RefObject<HTMLElement | null>, control: ViewControl) {
  useEffect(() => {
    const element = area.current;
    if (!element) return;
    const zoom = (event: WheelEvent) => {
      const isZoom = event.ctrlKey || event.metaKey || element.contains(document.activeElement);
      if (!isZoom || (control.isFitted && event.deltaY > 0 && !event.ctrlKey)) return;
      event.preventDefault();
      const speed = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? WHEEL_SPEED * LINE_PX : WHEEL_SPEED;
      const factor = Math.exp(-event.deltaY * (event.ctrlKey ? speed * PINCH_BOOST : speed));
      control.zoom(Math.min(2, Math.max(0.5, factor)), pointIn(frameOf(event, element), event));
    };
    let lastScale = 1;
    const pinch = (event: Event) => {
      const { type, scale, clientX, clientY } = event as PinchEvent;
      event.preventDefault();
      if (type === 'gesturestart') lastScale = 1;
      control.zoom(scale / lastScale, pointIn(frameOf(event, element), { clientX, clientY }));
      lastScale = scale;
    };
    const listeners = new AbortController();
    // React's own wheel listener is passive and cannot stop the page from scrolling.
    const options = { passive: false, signal: listeners.signal };
    element.addEventListener('wheel', zoom, options);
    // On touch screens, Safari also sends these events, but pointers already zoom there.
    if (!navigator.maxTouchPoints) {
      element.addEventListener('gesturestart', pinch, options);
      element.addEventListener('gesturechange', pinch, options);
    }
    return () => listeners.abort();
  }, [area, control]);
}

/** The frame under the pointer. */
function frameOf({ target }: Event, area: Element): Element {
  return (target instanceof Element && target.closest('[data-frame]')) || area;
}
