import { ReactCompareSlider } from 'react-compare-slider';

type ComparisonProps = {
  original: string;
  result: string;
  /** The style `background` of what lies behind a transparent result, if not the checkerboard. */
  background?: string;
};

/** Original on the left of the handle, result on a checkerboard on its right. Arrow keys move it. */
export default function Comparison({ original, result, background }: ComparisonProps) {
  return (
    <ReactCompareSlider
      className="absolute! inset-0 isolate"
      itemOne={
        // Opaque: where the original is narrower than the box, the result must not shine through.
        <div className="size-full bg-sunken">
          <img src={original} alt="Before" className="size-full object-contain" />
        </div>
      }
      itemTwo={
        <div className="checkerboard size-full" style={{ background }}>
          <img src={result} alt="After" className="size-full object-contain" />
        </div>
      }
    />
  );
}
