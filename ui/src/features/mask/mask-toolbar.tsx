import { BaseButton } from '@/components/base-button';
import { IconButton } from '@/components/icon-button';
import { RadioGroup, RadioOption } from '@/components/radio-options';
import { Spinner } from '@/components/spinner';
import { classNames } from '@/lib/class-names';
import { type Message, msg, t } from '@/lib/translate';
import { MaskIcon, type MaskIconName } from './mask-icon';
import { type Brush, brushSizes, useMaskStore } from './mask-store';

const brushes: { brush: Brush; icon: MaskIconName; label: Message; key: string }[] = [
  { brush: 'paint', icon: 'brush', label: msg('Brush'), key: 'B' },
  { brush: 'erase', icon: 'eraser', label: msg('Eraser'), key: 'E' },
  { brush: 'lasso', icon: 'lasso', label: msg('Lasso'), key: 'L' },
  { brush: 'select', icon: 'select', label: msg('Select'), key: 'S' },
  { brush: 'move', icon: 'hand', label: msg('Move'), key: 'H' },
];

type MaskToolbarProps = {
  canUndo: boolean;
  canRedo: boolean;
  canClear: boolean;
  onUndo: () => void;
  onRedo: () => void;
  onClear: () => void;
  onInvert: () => void;
  onSelectSubject: () => void;
  isSelecting: boolean;
};

const textButton =
  'inline-flex min-h-10 thumb:min-h-11 items-center gap-2 rounded-sm px-2.5 max-[24rem]:px-1.5 text-sm font-medium hover:bg-sunken aria-disabled:cursor-not-allowed aria-disabled:text-soft aria-disabled:opacity-60';

/** The brush, its size, selecting, and undo. */
export function MaskToolbar(props: MaskToolbarProps) {
  const { canUndo, canRedo, canClear, onUndo, onRedo, onClear, onInvert, onSelectSubject, isSelecting } =
    props;
  const { brush, brushSize, takesAway } = useMaskStore();
  return (
    <div className="flex flex-wrap items-center gap-1.5">
      <RadioGroup label={t('Tool')}>
        {brushes.map((option) => (
          <RadioOption
            key={option.brush}
            name="brush"
            label={t(option.label)}
            title={`${t(option.label)} (${option.key})`}
            isChosen={brush === option.brush}
            onChoose={() => useMaskStore.setState({ brush: option.brush })}
          >
            <MaskIcon name={option.icon} />
          </RadioOption>
        ))}
      </RadioGroup>
      {/* A click has no size. Its other button takes that place, so that no second row moves the picture. */}
      {brush !== 'select' && (
        <RadioGroup label={t('Brush size')}>
          {brushSizes.map((size) => (
            <RadioOption
              key={size}
              name="brush-size"
              label={`${size} px`}
              title={t('{size} px ([ and ])', { size })}
              isChosen={brushSize === size}
              onChoose={() => useMaskStore.setState({ brushSize: size })}
            >
              <span className="rounded-full bg-current" style={{ width: size, height: size }} />
            </RadioOption>
          ))}
        </RadioGroup>
      )}
      {/* biome-ignore lint/a11y/useSemanticElements: two buttons are not a form. */}
      <div
        role="group"
        aria-label={t('Selection')}
        className="flex rounded-md border border-line bg-surface p-0.5"
      >
        {brush === 'select' && (
          <button
            type="button"
            aria-pressed={takesAway}
            title={t('Clicks take away (or hold Alt)')}
            onClick={() => useMaskStore.setState({ takesAway: !takesAway })}
            className={classNames(textButton, takesAway && 'bg-accent-wash text-accent')}
          >
            <MaskIcon name="minus" />
            {t('Take away')}
          </button>
        )}
        <BaseButton disabled={isSelecting} onClick={onSelectSubject} className={textButton}>
          {isSelecting ? <Spinner /> : <MaskIcon name="subject" />}
          {t('Select subject')}
        </BaseButton>
      </div>
      {/* biome-ignore lint/a11y/useSemanticElements: three buttons are not a form. */}
      <div
        role="group"
        aria-label={t('History')}
        className="flex rounded-md border border-line bg-surface p-0.5"
      >
        <IconButton label={t('Undo')} title={t('Undo (Ctrl+Z)')} disabled={!canUndo} onClick={onUndo}>
          <MaskIcon name="undo" />
        </IconButton>
        <IconButton label={t('Redo')} title={t('Redo (Ctrl+Shift+Z)')} disabled={!canRedo} onClick={onRedo}>
          <MaskIcon name="redo" />
        </IconButton>
        <BaseButton disabled={!canClear} onClick={onClear} className={textButton}>
          {t('Clear')}
        </BaseButton>
        <button
          type="button"
          title={t('Select everything else (I)')}
          onClick={onInvert}
          className={textButton}
        >
          {t('Invert')}
        </button>
      </div>
    </div>
  );
}
