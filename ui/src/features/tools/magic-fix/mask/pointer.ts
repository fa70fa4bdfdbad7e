import type { PointerEvent } from 'react';
import type { Pointer } from './gestures';
import type { Point } from './view';

export function pointerOf(event: PointerEvent<HTMLElement>): Pointer {
  const { pointerId: id, pointerType: type, button, buttons } = event;
  return { id, type, button, buttons, ...pointOf(event, event.currentTarget) };
}

/** Where on an element something happened, in its own pixels. */
export function pointOf({ clientX, clientY }: { clientX: number; clientY: number }, element: Element): Point {
  const { left, top } = element.getBoundingClientRect();
  return { x: clientX - left, y: clientY - top };
}

/** Not in every browser for every pointer; without it a stroke ends at the frame's edge. */
export function capture({ currentTarget, pointerId }: PointerEvent<HTMLElement>) {
  try {
    currentTarget.setPointerCapture(pointerId);
  } catch {}
}
