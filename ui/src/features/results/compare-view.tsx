import { type ReactNode, useMemo, useRef, useState } from 'react';
import { ComparedPart, shareAt } from '@/components/comparison';
import { HoldButton } from '@/components/hold-button';
import { createGestures, type Drag, pan } from '@/components/pan-zoom/gestures';
import { PlacedImage } from '@/components/pan-zoom/placed-image';
import { useView } from '@/components/pan-zoom/use-view';
import { useWheelZoom } from '@/components/pan-zoom/use-wheel-zoom';
import type { Point } from '@/components/pan-zoom/view';
import { classNames } from '@/lib/class-names';
import { type Message, msg, t } from '@/lib/translate';
import { handleZoomKey, ZoomBar } from './zoom-bar';
import { zoomHandlers } from './zoom-handlers';

type Picture = { url: string; previewUrl?: string | null };

type CompareViewProps = {
  original: Picture;
  result: Picture;
  width: number;
  height: number;
  /** CSS `background` behind a transparent result. */
  background?: string;
  onLeave: () => void;
};

type Mode = 'slider' | 'side' | 'hold';

const modes: [Mode, Message][] = [
  ['slider', msg('Slider')],
  ['side', msg('Side by side')],
  ['hold', msg('Hold')],
];
/** A press this close to the line takes it; elsewhere an enlarged picture pans. In screen pixels. */
const REACH = 28;

/** The original and the result at the same zoom: with a line between them, side by side, or one after the other. */
export default function CompareView(props: CompareViewProps) {
  const { original, result, width, height, background, onLeave } = props;
  // The original is stretched to the size of the result, so that the same places lie over each other.
  const size = useMemo(() => ({ x: width, y: height }), [width, height]);
  const { frame, placement, control } = useView(size);
  const [mode, setMode] = useState<Mode>('slider');
  const [share, setShare] = useState(50);
  const line = useRef(share);
  const [isOriginal, setOriginal] = useState(false);
  const halves = useRef<HTMLDivElement>(null);
  useWheelZoom(halves, control);

  const gestures = useMemo(() => {
    const room = () => frame.current?.clientWidth || 1;
    const moveLine = ({ x }: Point) => {
      line.current = shareAt(x, room());
      setShare(line.current);
    };
    const drag = (move: (point: Point) => void): Drag => ({
      move: (points) => points.slice(-1).forEach(move),
      end: () => {},
      cancel: () => {},
      interrupt: () => {},
    });
    return createGestures(control, (pointer) => {
      const isNear = Math.abs(pointer.x - (line.current / 100) * room()) < REACH;
      if (mode !== 'slider' || !(control.isFitted || isNear)) return pan(control, pointer);
      moveLine(pointer);
      return drag(moveLine);
    });
  }, [control, frame, mode]);

  const handlers = zoomHandlers(control, gestures);
  // Full pixels only where they can be seen.
  const isFitted = control.isFitted;
  const place = ({ url, previewUrl }: Picture, behind?: string) =>
    placement && (
      <PlacedImage
        src={(isFitted && previewUrl) || url}
        size={size}
        view={placement.view}
        background={behind}
      />
    );
  const isSide = mode === 'side';
  const showsOriginal = isSide || (mode === 'hold' && isOriginal);

  return (
    <>
      {/* In the row of the picture: on a narrow screen, the buttons have a row of their own below it. */}
      <div
        ref={halves}
        className="absolute inset-0 row-start-1 row-end-2 flex overflow-hidden rounded-lg bg-sunken"
      >
        <div
          ref={frame}
          data-frame
          role="application"
          // biome-ignore lint/a11y/noNoninteractiveTabindex: the user can also move the pictures with the keyboard.
          tabIndex={0}
          aria-label={t('The original and the result: plus and minus zoom, arrow keys pan, Escape closes')}
          onKeyDown={(event) => handleZoomKey(event, control, onLeave)}
          {...handlers}
          className={classNames(
            'relative h-full flex-1 touch-none overflow-hidden select-none -outline-offset-2!',
            mode === 'slider' ? 'cursor-ew-resize' : 'cursor-grab active:cursor-grabbing',
          )}
        >
          {showsOriginal ? place(original) : place(result, background)}
          {mode === 'slider' && <ComparedPart share={share}>{place(original)}</ComparedPart>}
          <Tag side="left">{showsOriginal || mode === 'slider' ? t('Original') : t('Result')}</Tag>
          {mode === 'slider' && <Tag side="right">{t('Result')}</Tag>}
        </div>
        {isSide && (
          <div
            data-frame
            {...handlers}
            className="relative h-full flex-1 touch-none cursor-grab overflow-hidden border-l-2 border-surface select-none active:cursor-grabbing"
          >
            {place(result, background)}
            <Tag side="right">{t('Result')}</Tag>
          </div>
        )}
      </div>
      {mode === 'slider' && (
        <input
          type="range"
          min={0}
          max={100}
          value={Math.round(share)}
          aria-label={t('Compare the original with the result')}
          aria-valuetext={t('{percent} percent original', { percent: Math.round(share) })}
          onChange={({ target }) => {
            line.current = target.valueAsNumber;
            setShare(target.valueAsNumber);
          }}
          className="absolute bottom-3 left-3 row-start-1 row-end-2 w-40 accent-accent not-focus-visible:sr-only sm:bottom-16"
        />
      )}
      <ZoomBar control={control} placement={placement} />
      <div className="flex flex-wrap justify-center gap-2 px-2 pb-2 sm:absolute sm:bottom-3 sm:left-3 sm:p-0">
        <fieldset
          aria-label={t('Compare as')}
          className="flex min-w-0 flex-wrap rounded-md border border-line bg-surface p-0.5 shadow-raised"
        >
          {modes.map(([name, label]) => (
            <button
              key={name}
              type="button"
              aria-pressed={mode === name}
              onClick={() => setMode(name)}
              className={classNames(
                'min-h-9 thumb:min-h-11 rounded-sm px-2.5 max-[24rem]:px-1 text-sm font-medium',
                mode === name ? 'bg-accent-wash text-accent' : 'text-soft hover:text-ink',
              )}
            >
              {t(label)}
            </button>
          ))}
        </fieldset>
        {mode === 'hold' && (
          <HoldButton
            name={t('Hold to see the original')}
            isOn={isOriginal}
            onHold={setOriginal}
            className="min-h-9 thumb:min-h-11 touch-none rounded-md border border-line bg-surface px-3 text-sm font-medium shadow-raised"
          >
            {t('Hold to see the original')}
          </HoldButton>
        )}
      </div>
    </>
  );
}

function Tag({ side, children }: { side: 'left' | 'right'; children: ReactNode }) {
  return (
    <span
      className={classNames(
        'pointer-events-none absolute bottom-3 rounded-sm border border-line bg-surface px-2 py-1 text-xs font-medium text-ink sm:top-16 sm:bottom-auto',
        side === 'left' ? 'left-3' : 'right-3',
      )}
    >
      {children}
    </span>
  );
}
