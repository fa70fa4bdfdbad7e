import { useId } from 'react';
import { msg, t } from '@/lib/translate';
import type { Crop } from './look';
import { Range } from './range';

const WHOLE = 'whole';
const TIGHT = 'tight';
const FIRST_MARGIN = 8;

/** The shapes that shops and feeds ask for. */
const shapes = [
  { aspect: '1:1', name: msg('Marketplace square (1:1)') },
  { aspect: '4:5', name: msg('Social feed portrait (4:5)') },
  { aspect: '3:4', name: msg('Shop catalog portrait (3:4)') },
  { aspect: '16:9', name: msg('Wide banner (16:9)') },
];

type CropOptionsProps = { crop: Crop | null; onCrop: (crop: Crop | null) => void };

/** The part of the picture that the file has. */
export function CropOptions({ crop, onCrop }: CropOptionsProps) {
  const id = useId();
  function choose(value: string) {
    if (value === WHOLE) return onCrop(null);
    onCrop({ margin: crop?.margin ?? FIRST_MARGIN, aspect: value === TIGHT ? null : value });
  }
  return (
    <div className="grid gap-x-6 gap-y-3 sm:grid-cols-2">
      <div className="grid content-start gap-2">
        <label htmlFor={id} className="text-sm font-semibold">
          {t('Crop')}
        </label>
        <select
          id={id}
          value={crop ? (crop.aspect ?? TIGHT) : WHOLE}
          onChange={({ target }) => choose(target.value)}
          className="min-h-11 w-full min-w-0 rounded-md border border-control bg-surface px-3 text-sm"
        >
          <option value={WHOLE}>{t('Whole picture')}</option>
          <option value={TIGHT}>{t('To the subject')}</option>
          {shapes.map(({ aspect, name }) => (
            <option key={aspect} value={aspect}>
              {t(name)}
            </option>
          ))}
        </select>
      </div>
      {crop && (
        <Range
          label={t('Margin')}
          unit="%"
          max={50}
          value={crop.margin}
          onValue={(margin) => onCrop({ ...crop, margin })}
        />
      )}
    </div>
  );
}
