import { useEffect, useRef } from 'react';
import { useView } from '@/components/pan-zoom/use-view';
import { useWheelZoom } from '@/components/pan-zoom/use-wheel-zoom';
import { ZoomControls } from '@/components/pan-zoom/zoom-controls';
import { PictureWait } from '@/components/picture-wait';
import { useDrawing } from '@/features/mask/use-drawing';
import { useShortcuts } from '@/features/mask/use-shortcuts';
import { classNames } from '@/lib/class-names';
import type { ImageSize } from '@/lib/image-size';
import { t } from '@/lib/translate';
import { paintCutout } from './paint-cutout';
import { brushSizes, type Finish, type TouchUp } from './use-finish';
import { usePicture } from './use-picture';

type Source = { url: string; previewUrl?: string | null };

type TouchUpSurfaceProps = {
  finish: Finish;
  touchUp: TouchUp;
  result: Source;
  original: Source;
  size: ImageSize;
};

/** The cutout, to erase from it and to restore the original. */
export default function TouchUpSurface({ finish, touchUp, result, original, size }: TouchUpSurfaceProps) {
  const { brush, changeBrush } = finish;
  const editor = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const { frame, placement, control } = useView(size);
  // Full pixels only where they can be seen.
  const urlOf = ({ url, previewUrl }: Source) => (control.isFitted && previewUrl) || url;
  const awaited = [usePicture(urlOf(result)), usePicture(urlOf(original))] as const;
  const [{ picture: cutout }, { picture: restored }] = awaited;
  useWheelZoom(frame, control);
  const isSpaceDown = useShortcuts(editor, {
    undo: touchUp.undo,
    redo: touchUp.redo,
    control,
    letters: {
      e: () => changeBrush({ tool: 'erase' }),
      r: () => changeBrush({ tool: 'restore' }),
      h: () => changeBrush({ tool: 'move' }),
      '[': () => changeBrush({ size: brushSizes.findLast((one) => one < brush.size) ?? brush.size }),
      ']': () => changeBrush({ size: brushSizes.find((one) => one > brush.size) ?? brush.size }),
    },
  });
  const { activeStroke, ring, handlers } = useDrawing(control, {
    brush: () => ({ kind: brush.tool === 'erase' ? 'erase' : 'paint', size: brush.size }),
    isMoving: () => brush.tool === 'move' || isSpaceDown.current,
    onStroke: (mark) => mark.kind !== 'area' && touchUp.draw(mark),
  });

  const { strokes } = touchUp;
  const { x, y } = size;
  useEffect(() => {
    const context = canvas.current?.getContext('2d');
    if (!canvas.current || !context || !placement || !cutout) return;
    const { box, view } = placement;
    const density = window.devicePixelRatio || 1;
    canvas.current.width = Math.round(box.width * density);
    canvas.current.height = Math.round(box.height * density);
    const scale = view.scale * density;
    context.setTransform(scale, 0, 0, scale, view.x * density, view.y * density);
    const shown = activeStroke ? [...strokes, activeStroke] : strokes;
    paintCutout(context, { cutout, original: restored }, shown, { x, y });
  }, [placement, cutout, restored, strokes, activeStroke, x, y]);

  useEffect(() => {
    frame.current?.focus({ preventScroll: true });
    // The button that opened it is below, on a phone a whole screen away.
    frame.current?.scrollIntoView?.({ block: 'nearest' });
  }, [frame]);

  return (
    <div ref={editor} className="group/editor absolute inset-0">
      <div
        ref={frame}
        role="application"
        // biome-ignore lint/a11y/noNoninteractiveTabindex: the user can also draw with the keyboard.
        tabIndex={0}
        aria-label={t(
          'Cutout to touch up: arrow keys move the brush, Enter starts and ends a stroke, Escape closes',
        )}
        onContextMenu={(event) => event.preventDefault()}
        {...handlers}
        onKeyDown={(event) => {
          if (event.key === 'Escape') finish.setTouchingUp(false);
          handlers.onKeyDown(event);
        }}
        className={classNames(
          'absolute inset-0 scroll-mt-20 touch-none overflow-hidden rounded-lg select-none [-webkit-touch-callout:none] -outline-offset-2!',
          brush.tool === 'move'
            ? 'cursor-grab active:cursor-grabbing'
            : 'cursor-crosshair pointer-fine:cursor-none',
          'group-data-moving/editor:cursor-grab',
        )}
      >
        {placement && (
          <div
            className="checkerboard pointer-events-none absolute"
            style={{
              left: placement.view.x,
              top: placement.view.y,
              width: x * placement.view.scale,
              height: y * placement.view.scale,
            }}
          />
        )}
        <canvas ref={canvas} className="pointer-events-none absolute inset-0 size-full" />
        <div
          ref={ring}
          hidden
          className={classNames(
            'brush-ring group-data-moving/editor:invisible',
            brush.tool === 'move' && 'invisible',
            brush.tool === 'erase' && 'border-dashed',
          )}
          style={{ width: brush.size }}
        />
      </div>
      <PictureWait pictures={awaited} />
      {/* biome-ignore lint/a11y/useSemanticElements: buttons are not a form. */}
      <div
        role="group"
        aria-label={t('Zoom')}
        className="absolute top-3 right-3 flex items-center rounded-md border border-line bg-surface p-0.5 shadow-raised"
      >
        <ZoomControls control={control} level={null} />
      </div>
    </div>
  );
}
