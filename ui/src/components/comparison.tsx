import { ReactCompareSlider } from 'react-compare-slider';

type ComparisonProps = { original: string; result: string };

/** Original on the left of the handle, result on a checkerboard on its right. Arrow keys move it. */
export default function Comparison({ original, result }: ComparisonProps) {
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
        <div className="checkerboard size-full">
          <img src={result} alt="After" className="size-full object-contain" />
        </div>
      }
    />
  );
}
