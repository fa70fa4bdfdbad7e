import { t } from '@/lib/translate';
import type { Gradient } from './look';
import { Range } from './range';

type GradientOptionsProps = { gradient: Gradient; onGradient: (gradient: Gradient) => void };

/** The colors and the direction of a gradient. */
export function GradientOptions({ gradient, onGradient }: GradientOptionsProps) {
  return (
    <div className="grid gap-3 sm:grid-cols-2">
      <div className="flex flex-wrap gap-4">
        {(['from', 'to'] as const).map((end) => (
          <label key={end} className="flex items-center gap-2 text-sm">
            <input
              type="color"
              value={gradient[end]}
              onChange={({ target }) => onGradient({ ...gradient, [end]: target.value })}
              className="size-10 thumb:size-11 cursor-pointer rounded-sm"
            />
            {end === 'from' ? t('From') : t('To')}
          </label>
        ))}
      </div>
      <Range
        label={t('Direction')}
        unit="°"
        max={359}
        value={gradient.angle}
        onValue={(angle) => onGradient({ ...gradient, angle })}
      />
    </div>
  );
}
