import type { KeyboardEvent } from 'react';
import type { Placement, ViewControl } from '@/components/pan-zoom/use-view';
import { ZoomControls } from '@/components/pan-zoom/zoom-controls';
import { t } from '@/lib/translate';

/** Screen pixels per press of an arrow key. */
const KEY_STEP = 48;

/** The zoom level and its buttons, at the top right of a picture; on a phone, below it. */
export function ZoomBar({ control, placement }: { control: ViewControl; placement: Placement | null }) {
  const scale = placement?.view.scale ?? 1;
  return (
    // biome-ignore lint/a11y/useSemanticElements: buttons are not a form.
    <div
      role="group"
      aria-label={t('Zoom')}
      className="flex items-center rounded-md border border-line bg-surface p-0.5 shadow-raised max-sm:my-2 sm:absolute sm:top-3 sm:right-3"
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
          title={t('Actual pixels (1)')}
          onClick={() => zoomToActual(control)}
          className="min-h-10 thumb:min-h-11 rounded-sm px-2 text-sm font-medium tabular-nums hover:bg-sunken"
        >
          1:1
        </button>
      </ZoomControls>
    </div>
  );
}

/** Zooms and pans with the keys of an enlarged picture; Escape leaves it. */
export function handleZoomKey(event: KeyboardEvent, control: ViewControl, onLeave: () => void) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const action = event.key === 'Escape' ? onLeave : keyActions(control)[event.key];
  if (!action) return;
  event.preventDefault();
  action();
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
export function actualScale(): number {
  return 1 / (window.devicePixelRatio || 1);
}
