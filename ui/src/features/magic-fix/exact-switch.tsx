import { Switch } from '@/components/switch';
import { t } from '@/lib/translate';

type ExactSwitchProps = {
  isExact: boolean;
  /** How far an inexact fix may reach beyond the mask, in image pixels; null while the prompt is unknown. */
  reach: number | null;
  onChange: (isExact: boolean) => void;
};

/** Chooses whether a fix may change anything outside the mask, and says what follows. */
export function ExactSwitch({ isExact, reach, onChange }: ExactSwitchProps) {
  return (
    <div className="grid gap-1">
      <Switch label={t('Exact mask')} isOn={isExact} onSwitch={onChange} aria-describedby="exact-hint" />
      <p id="exact-hint" className="text-sm text-soft">
        {isExact
          ? t('Every pixel outside your mask stays exactly as it is.')
          : reach === null
            ? t('Off: the result may blend in a few pixels beyond your mask. On: nothing outside it changes.')
            : t('The result may blend in up to {reach} px beyond your mask, as far as the thin line.', {
                reach,
              })}
      </p>
    </div>
  );
}
