import { type RefObject, Suspense, type SyntheticEvent, useState } from 'react';
import { lazyWithRetry } from '@/components/lazy-with-retry';
import { PlacedImage } from '@/components/pan-zoom/placed-image';
import type { Placement, ViewControl } from '@/components/pan-zoom/use-view';
import { PictureWait } from '@/components/picture-wait';
import { classNames } from '@/lib/class-names';
import { t } from '@/lib/translate';
import type { EditedPicture } from './edited-picture';
import type { Picked } from './gestures';
import type { Area, Clicks, Shape, Stroke } from './marks';
import { useMaskStore } from './mask-store';
import { SelectMarks } from './select-marks';
import { useDrawing } from './use-drawing';

const MaskLayer = lazyWithRetry(() => import('./mask-layer'), MaskLayerFailure);

type MaskSurfaceProps = {
  image: EditedPicture;
  shapes: Shape[];
  /** The next stroke starts a new mask and hides this one. */
  isSubmitted: boolean;
  /** How far the result may change beyond the mask, in image pixels. */
  reach: number;
  frame: RefObject<HTMLDivElement | null>;
  placement: Placement | null;
  control: ViewControl;
  isSpaceDown: RefObject<boolean>;
  onBegin: () => void;
  onStroke: (mark: Stroke | Area) => void;
  onPick: (picked: Picked) => void;
  /** The clicks of the selection in progress. */
  clicks: Clicks | null;
  isSelecting: boolean;
  /** The picture to show, in the resolution that can be seen. */
  url: string;
  /** Whether it is shown for comparison, without the mask. */
  isComparing: boolean;
};

const noShapes: Shape[] = [];
/** The ring of the select tool, in screen pixels. */
const POINTER_SIZE = 12;

/** The image with the mask over it and the brush cursor. */
export function MaskSurface(props: MaskSurfaceProps) {
  const { image, shapes, isSubmitted, reach, frame, placement, control, isSpaceDown, url, isComparing } =
    props;
  const { onBegin, onStroke, onPick, clicks, isSelecting } = props;
  const { brush, brushSize } = useMaskStore();
  const [state, setState] = useState<'loading' | 'loaded' | 'failed'>('loading');
  const [attempt, setAttempt] = useState(0);
  const { activeStroke, activeBox, ring, handlers } = useDrawing(control, {
    // Read from the store: several keys and clicks arrive between two renders.
    brush: () => {
      const { brush, brushSize } = useMaskStore.getState();
      const kind = brush === 'erase' ? 'erase' : 'paint';
      return { kind, size: brushSize, isLasso: brush === 'lasso', feelsPressure: true };
    },
    isMoving: () => useMaskStore.getState().brush === 'move' || isSpaceDown.current,
    isSelecting: () => useMaskStore.getState().brush === 'select',
    onBegin,
    onStroke,
    onPick,
  });
  const shown = isSubmitted && activeStroke?.kind === 'paint' ? noShapes : shapes;

  return (
    <>
      <div
        ref={frame}
        role="application"
        // biome-ignore lint/a11y/noNoninteractiveTabindex: the user can also draw with the keyboard.
        tabIndex={0}
        aria-label={t('Image to draw on')}
        aria-describedby="drawing-help"
        onContextMenu={(event) => event.preventDefault()}
        {...handlers}
        className={classNames(
          'absolute inset-0 touch-none overflow-hidden rounded-lg select-none [-webkit-touch-callout:none] -outline-offset-2!',
          brush === 'move'
            ? 'cursor-grab active:cursor-grabbing'
            : brush === 'lasso'
              ? 'cursor-crosshair'
              : 'cursor-crosshair pointer-fine:cursor-none',
          'group-data-moving/editor:cursor-grab',
        )}
      >
        {placement && (
          <>
            <PlacedImage
              key={attempt}
              src={url}
              size={image}
              view={placement.view}
              onLoad={() => setState('loaded')}
              onError={() => setState('failed')}
            />
            {!isComparing && (
              <Suspense>
                <MaskLayer
                  image={image}
                  shapes={shown}
                  activeStroke={activeStroke}
                  reach={reach}
                  {...placement}
                />
              </Suspense>
            )}
            {brush === 'select' && !isComparing && (
              <SelectMarks
                clicks={clicks}
                activeBox={activeBox}
                isPending={isSelecting}
                view={placement.view}
              />
            )}
          </>
        )}
        <div
          ref={ring}
          hidden
          className={classNames(
            'brush-ring group-data-moving/editor:invisible',
            (brush === 'move' || brush === 'lasso') && 'invisible',
            brush === 'erase' && 'border-dashed',
          )}
          style={{ width: brush === 'select' ? POINTER_SIZE : brushSize }}
        />
      </div>
      <PictureWait
        pictures={[
          {
            isMissing: state === 'loading',
            hasFailed: state === 'failed',
            isTrying: false,
            tryAgain: () => {
              setState('loading');
              setAttempt(attempt + 1);
            },
          },
        ]}
      />
    </>
  );
}

function MaskLayerFailure({ onTryAgain }: { onTryAgain: () => void }) {
  const keep = (event: SyntheticEvent) => event.stopPropagation();
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: keeps the button's events from the drawing area around it.
    <div onPointerDown={keep} onKeyDown={keep}>
      <PictureWait pictures={[{ isMissing: true, hasFailed: true, isTrying: false, tryAgain: onTryAgain }]} />
    </div>
  );
}
