import { Switch } from '@/components/switch';
import { t } from '@/lib/translate';
import { type Shadow, softShadow } from './look';
import { Range } from './range';

type ShadowOptionsProps = { shadow: Shadow | null; onShadow: (shadow: Shadow | null) => void };

/** The shadow of the subject. */
export function ShadowOptions({ shadow, onShadow }: ShadowOptionsProps) {
  const change = (part: Partial<Shadow>) => shadow && onShadow({ ...shadow, ...part });
  return (
    <div className="grid gap-2 text-sm">
      <Switch
        label={t('Shadow')}
        isOn={shadow !== null}
        onSwitch={(isOn) => onShadow(isOn ? softShadow : null)}
      />
      {shadow && (
        <div className="grid gap-x-6 gap-y-2 sm:grid-cols-2">
          <Range
            label={t('Strength')}
            unit="%"
            max={100}
            value={Math.round(shadow.opacity * 100)}
            onValue={(percent) => change({ opacity: percent / 100 })}
          />
          <Range
            label={t('Softness')}
            unit="%"
            max={10}
            step={0.5}
            value={shadow.blur}
            onValue={(blur) => change({ blur })}
          />
          <Range
            label={t('To the right')}
            unit="%"
            min={-20}
            max={20}
            step={0.5}
            value={shadow.x}
            onValue={(x) => change({ x })}
          />
          <Range
            label={t('Down')}
            unit="%"
            min={-20}
            max={20}
            step={0.5}
            value={shadow.y}
            onValue={(y) => change({ y })}
          />
        </div>
      )}
    </div>
  );
}
