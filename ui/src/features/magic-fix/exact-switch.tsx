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
      <label className="flex min-h-10 thumb:min-h-11 w-fit cursor-pointer items-center gap-3 font-semibold">
        <input
          type="checkbox"
          role="switch"
          checked={isExact}
          aria-checked={isExact}
          aria-describedby="exact-hint"
          onChange={({ target }) => onChange(target.checked)}
          className="size-5 accent-accent"
        />
        {t('Exact mask')}
      </label>
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
