import { useId } from 'react';
import { currentLocale } from '@/lib/translate';

type RangeProps = {
  label: string;
  unit: string;
  min?: number;
  max: number;
  step?: number;
  value: number;
  onValue: (value: number) => void;
};

/** A slider with its value. */
export function Range({ label, unit, min = 0, max, step = 1, value, onValue }: RangeProps) {
  const id = useId();
  const text = `${value.toLocaleString(currentLocale())} ${unit}`.replace(' °', '°');
  return (
    <div className="grid min-w-0 gap-1">
      <div className="flex justify-between gap-3 text-sm">
        <label htmlFor={id}>{label}</label>
        <span className="text-soft tabular-nums">{text}</span>
      </div>
      <input
        id={id}
        type="range"
        min={min}
        max={max}
        step={step}
        value={value}
        aria-valuetext={text}
        onChange={({ target }) => onValue(target.valueAsNumber)}
        className="h-8 thumb:h-11 w-full cursor-pointer accent-accent"
      />
    </div>
  );
}
