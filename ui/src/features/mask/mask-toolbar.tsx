import { IconButton } from '@/components/icon-button';
import { RadioGroup, RadioOption } from '@/components/radio-options';
import { Spinner } from '@/components/spinner';
import { classNames } from '@/lib/class-names';
import { MaskIcon, type MaskIconName } from './mask-icon';
import { type Brush, brushSizes, useMaskStore } from './mask-store';

const brushes: { brush: Brush; icon: MaskIconName; label: string; key: string }[] = [
  { brush: 'paint', icon: 'brush', label: 'Brush', key: 'B' },
  { brush: 'erase', icon: 'eraser', label: 'Eraser', key: 'E' },
  { brush: 'lasso', icon: 'lasso', label: 'Lasso', key: 'L' },
  { brush: 'select', icon: 'select', label: 'Select', key: 'S' },
  { brush: 'move', icon: 'hand', label: 'Move', key: 'H' },
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
  'inline-flex min-h-10 thumb:min-h-11 items-center gap-2 rounded-sm px-3 text-sm font-medium hover:bg-sunken disabled:cursor-not-allowed disabled:text-soft disabled:opacity-60';

/** The brush, its size, selecting, and undo. */
export function MaskToolbar(props: MaskToolbarProps) {
  const { canUndo, canRedo, canClear, onUndo, onRedo, onClear, onInvert, onSelectSubject, isSelecting } =
    props;
  const { brush, brushSize, takesAway } = useMaskStore();
  return (
    <div className="flex flex-wrap items-center gap-2">
      <RadioGroup label="Tool">
        {brushes.map((option) => (
          <RadioOption
            key={option.brush}
            name="brush"
            label={option.label}
            title={`${option.label} (${option.key})`}
            isChosen={brush === option.brush}
            onChoose={() => useMaskStore.setState({ brush: option.brush })}
          >
            <MaskIcon name={option.icon} />
          </RadioOption>
        ))}
      </RadioGroup>
      <RadioGroup label="Brush size">
        {brushSizes.map((size) => (
          <RadioOption
            key={size}
            name="brush-size"
            label={`${size} px`}
            title={`${size} px ([ and ])`}
            isChosen={brushSize === size}
            onChoose={() => useMaskStore.setState({ brushSize: size })}
          >
            <span className="rounded-full bg-current" style={{ width: size, height: size }} />
          </RadioOption>
        ))}
      </RadioGroup>
      {/* biome-ignore lint/a11y/useSemanticElements: two buttons are not a form. */}
      <div
        role="group"
        aria-label="Selection"
        className="flex rounded-md border border-line bg-surface p-0.5"
      >
        <button type="button" disabled={isSelecting} onClick={onSelectSubject} className={textButton}>
          {isSelecting ? <Spinner /> : <MaskIcon name="subject" />}
          Select subject
        </button>
        {brush === 'select' && (
          <button
            type="button"
            aria-pressed={takesAway}
            title="Clicks take away (or hold Alt)"
            onClick={() => useMaskStore.setState({ takesAway: !takesAway })}
            className={classNames(textButton, takesAway && 'bg-accent-wash text-accent')}
          >
            <MaskIcon name="minus" />
            Take away
          </button>
        )}
      </div>
      {/* biome-ignore lint/a11y/useSemanticElements: three buttons are not a form. */}
      <div role="group" aria-label="History" className="flex rounded-md border border-line bg-surface p-0.5">
        <IconButton label="Undo" title="Undo (Ctrl+Z)" disabled={!canUndo} onClick={onUndo}>
          <MaskIcon name="undo" />
        </IconButton>
        <IconButton label="Redo" title="Redo (Ctrl+Shift+Z)" disabled={!canRedo} onClick={onRedo}>
          <MaskIcon name="redo" />
        </IconButton>
        <button type="button" disabled={!canClear} onClick={onClear} className={textButton}>
          Clear
        </button>
        <button type="button" title="Select everything else (I)" onClick={onInvert} className={textButton}>
          Invert
        </button>
      </div>
    </div>
  );
}
