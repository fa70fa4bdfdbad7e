import type { PointerEvent } from 'react';
import type { Point } from './view';

/** The parts of a pointer event that gestures need. Coordinates are pixels of the frame. */
export type Pointer = Point & {
  id: number;
  type: string;
  button: number;
  buttons: number;
  /** Whether the Alt key was down. */
  alt?: boolean;
  isShift?: boolean;
};

export function toPointer(event: PointerEvent<HTMLElement>): Pointer {
  const { pointerId: id, pointerType: type, button, buttons, altKey: alt, shiftKey: isShift } = event;
  return { id, type, button, buttons, alt, isShift, ...pointIn(event.currentTarget, event) };
}

/** Converts window coordinates to coordinates in `element`. */
export function pointIn(element: Element, { clientX, clientY }: { clientX: number; clientY: number }): Point {
  const { left, top } = element.getBoundingClientRect();
  return { x: clientX - left, y: clientY - top };
}

/** Some browsers refuse this for some pointers; a drag then ends at the frame's edge. */
export function capturePointer({ currentTarget, pointerId }: PointerEvent<HTMLElement>) {
  try {
    currentTarget.setPointerCapture(pointerId);
  } catch {}
}
