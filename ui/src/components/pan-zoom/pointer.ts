import type { PointerEvent } from 'react';
import type { Point } from './view';

/** A position on the way of a pointer, with the pressure of a pen from 0 to 1. */
export type Sample = Point & { pressure?: number };

/** The parts of a pointer event that gestures need. Coordinates are pixels of the frame. */
export type Pointer = Sample & {
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
  return { id, type, button, buttons, alt, isShift, ...sampleIn(event.currentTarget, event) };
}

type WindowSample = { clientX: number; clientY: number; pressure: number };

/** Converts a position in the window to one in `element`. */
export function sampleIn(element: Element, event: WindowSample): Sample {
  return { ...pointIn(element, event), pressure: event.pressure };
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
