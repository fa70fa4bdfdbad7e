import type { MouseEvent, PointerEvent } from 'react';
import type { createGestures } from '@/components/pan-zoom/gestures';
import { capturePointer, pointIn, toPointer } from '@/components/pan-zoom/pointer';
import type { ViewControl } from '@/components/pan-zoom/use-view';

/** Connects the pointers over an enlarged picture to its gestures. A double click zooms in. */
export function zoomHandlers(control: ViewControl, gestures: ReturnType<typeof createGestures>) {
  return {
    onPointerDown: (event: PointerEvent<HTMLElement>) => {
      capturePointer(event);
      gestures.press(toPointer(event));
    },
    onPointerMove: (event: PointerEvent<HTMLElement>) => gestures.move(toPointer(event)),
    onPointerUp: ({ pointerId }: PointerEvent) => gestures.release({ id: pointerId }),
    onPointerCancel: ({ pointerId }: PointerEvent) => gestures.cancel({ id: pointerId }),
    onDoubleClick: (event: MouseEvent<HTMLElement>) => control.zoom(2, pointIn(event.currentTarget, event)),
  };
}
