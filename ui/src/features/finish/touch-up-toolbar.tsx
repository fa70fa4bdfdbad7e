import { Button } from '@/components/button';
import { IconButton } from '@/components/icon-button';
import { RadioGroup, RadioOption } from '@/components/radio-options';
import { MaskIcon, type MaskIconName } from '@/features/mask/mask-icon';
import { brushSizes, type Finish, type TouchUp, type TouchUpBrush } from './use-finish';

const tools: { tool: TouchUpBrush['tool']; icon: MaskIconName; label: string; key: string }[] = [
  { tool: 'erase', icon: 'eraser', label: 'Erase', key: 'E' },
  { tool: 'restore', icon: 'brush', label: 'Restore', key: 'R' },
  { tool: 'move', icon: 'hand', label: 'Move', key: 'H' },
];
/** The largest brush is drawn smaller in its button. */
const DOT_SHARE = 0.4;

/** The brush of the touch-up and its history. */
export function TouchUpToolbar({ finish, touchUp }: { finish: Finish; touchUp: TouchUp }) {
  const { brush, changeBrush } = finish;
  return (
    <div className="grid gap-2">
      <div className="flex flex-wrap items-center gap-2">
        <RadioGroup label="Touch-up tool">
          {tools.map(({ tool, icon, label, key }) => (
            <RadioOption
              key={tool}
              title={`${label} (${key})`}
              label={label}
              name="touch-up-tool"
              isChosen={brush.tool === tool}
              onChoose={() => changeBrush({ tool })}
              className="px-2"
            >
              <MaskIcon name={icon} />
              <span className="text-sm font-medium">{label}</span>
            </RadioOption>
          ))}
        </RadioGroup>
        <RadioGroup label="Touch-up brush size">
          {brushSizes.map((size) => (
            <RadioOption
              key={size}
              title={`${size} px ([ and ])`}
              label={`${size} px`}
              name="touch-up-size"
              isChosen={brush.size === size}
              onChoose={() => changeBrush({ size })}
            >
              <span
                className="rounded-full bg-current"
                style={{ width: size * DOT_SHARE, height: size * DOT_SHARE }}
              />
            </RadioOption>
          ))}
        </RadioGroup>
        {/* biome-ignore lint/a11y/useSemanticElements: buttons are not a form. */}
        <div role="group" aria-label="Touch-up history" className="flex rounded-md border border-line p-0.5">
          <IconButton label="Undo" title="Undo (Ctrl+Z)" disabled={!touchUp.canUndo} onClick={touchUp.undo}>
            <MaskIcon name="undo" />
          </IconButton>
          <IconButton
            label="Redo"
            title="Redo (Ctrl+Shift+Z)"
            disabled={!touchUp.canRedo}
            onClick={touchUp.redo}
          >
            <MaskIcon name="redo" />
          </IconButton>
          <button
            type="button"
            disabled={touchUp.strokes.length === 0}
            onClick={touchUp.reset}
            className="min-h-10 thumb:min-h-11 rounded-sm px-3 text-sm font-medium hover:bg-sunken disabled:cursor-not-allowed disabled:text-soft disabled:opacity-60"
          >
            Reset
          </button>
        </div>
        <Button size="sm" onClick={() => finish.setTouchingUp(false)}>
          Done
        </Button>
      </div>
      <p className="text-xs text-soft">
        Erase what should be gone; Restore brings back the original.{' '}
        <span className="pointer-coarse:hidden">Scroll to zoom; hold Space and drag to pan.</span>
        <span className="hidden pointer-coarse:inline">Use two fingers to zoom and pan.</span>
      </p>
    </div>
  );
}
