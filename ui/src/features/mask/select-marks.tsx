import type { View } from '@/components/pan-zoom/view';
import { classNames } from '@/lib/class-names';
import type { Box } from './gestures';
import type { Clicks, ImagePoint } from './marks';

type SelectMarksProps = {
  clicks: Clicks | null;
  /** The box that is being dragged, in pixels of the frame. */
  activeBox: Box | null;
  isPending: boolean;
  view: View;
};

/** The points and the box of the selection, over the image. */
export function SelectMarks({ clicks, activeBox, isPending, view }: SelectMarksProps) {
  const dots = [
    ...(clicks?.positive ?? []).map((at) => ({ at, isPositive: true })),
    ...(clicks?.negative ?? []).map((at) => ({ at, isPositive: false })),
  ];
  return (
    <div aria-hidden className="pointer-events-none absolute inset-0">
      {activeBox && (
        <div
          className="absolute border-2 border-white border-dashed shadow-[0_0_0_1px_rgb(0_0_0/0.7)]"
          style={{ left: activeBox.x, top: activeBox.y, width: activeBox.width, height: activeBox.height }}
        />
      )}
      {dots.map(({ at, isPositive }) => (
        <span
          key={`${at.x} ${at.y} ${isPositive}`}
          className={classNames(
            'absolute -mt-2 -ml-2 grid size-4 place-items-center rounded-full border border-white text-xs leading-none font-bold shadow-[0_0_0_1px_rgb(0_0_0/0.7)]',
            isPositive ? 'bg-accent text-on-accent' : 'bg-danger text-on-danger',
            isPending && 'motion-safe:animate-pulse',
          )}
          style={inFrame(at, view)}
        >
          {isPositive ? '+' : '−'}
        </span>
      ))}
    </div>
  );
}

const inFrame = ({ x, y }: ImagePoint, { x: left, y: top, scale }: View) => ({
  left: left + (x + 0.5) * scale,
  top: top + (y + 0.5) * scale,
});
