import { BaseButton } from '@/components/base-button';
import { Button } from '@/components/button';
import { IconButton } from '@/components/icon-button';
import { RadioGroup, RadioOption } from '@/components/radio-options';
import { MaskIcon, type MaskIconName } from '@/features/mask/mask-icon';
import { type Message, msg, t } from '@/lib/translate';
import { brushSizes, type Finish, type TouchUp, type TouchUpBrush } from './use-finish';

const tools: { tool: TouchUpBrush['tool']; icon: MaskIconName; label: Message; key: string }[] = [
  { tool: 'erase', icon: 'eraser', label: msg('Erase'), key: 'E' },
  { tool: 'restore', icon: 'brush', label: msg('Restore'), key: 'R' },
  { tool: 'move', icon: 'hand', label: msg('Move'), key: 'H' },
];
/** The largest brush is drawn smaller in its button. */
const DOT_SHARE = 0.4;

/** The brush of the touch-up and its history. */
export function TouchUpToolbar({ finish, touchUp }: { finish: Finish; touchUp: TouchUp }) {
  const { brush, changeBrush } = finish;
  return (
    <div className="grid gap-2">
      <div
        data-touching-up
        className="flex flex-wrap items-center gap-2 docked:fixed docked:inset-x-0 docked:bottom-(--offline) docked:z-20 docked:justify-center docked:border-t docked:border-line docked:bg-surface docked:px-4 docked:py-2"
      >
        <RadioGroup label={t('Touch-up tool')}>
          {tools.map(({ tool, icon, label, key }) => (
            <RadioOption
              key={tool}
              title={`${t(label)} (${key})`}
              label={t(label)}
              name="touch-up-tool"
              isChosen={brush.tool === tool}
              onChoose={() => changeBrush({ tool })}
              className="px-2"
            >
              <MaskIcon name={icon} />
              <span className="text-sm font-medium docked:max-lg:sr-only">{t(label)}</span>
            </RadioOption>
          ))}
        </RadioGroup>
        <RadioGroup label={t('Touch-up brush size')}>
          {brushSizes.map((size) => (
            <RadioOption
              key={size}
              title={t('{size} px ([ and ])', { size })}
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
        <div
          role="group"
          aria-label={t('Touch-up history')}
          className="flex rounded-md border border-line p-0.5"
        >
          <IconButton
            label={t('Undo')}
            title={t('Undo (Ctrl+Z)')}
            disabled={!touchUp.canUndo}
            onClick={touchUp.undo}
          >
            <MaskIcon name="undo" />
          </IconButton>
          <IconButton
            label={t('Redo')}
            title={t('Redo (Ctrl+Shift+Z)')}
            disabled={!touchUp.canRedo}
            onClick={touchUp.redo}
          >
            <MaskIcon name="redo" />
          </IconButton>
          <BaseButton
            disabled={touchUp.strokes.length === 0}
            onClick={touchUp.reset}
            className="min-h-10 thumb:min-h-11 rounded-sm px-3 text-sm font-medium hover:bg-sunken aria-disabled:cursor-not-allowed aria-disabled:text-soft aria-disabled:opacity-60"
          >
            {t('Reset')}
          </BaseButton>
        </div>
        <Button size="sm" onClick={() => finish.setTouchingUp(false)}>
          {t('Done')}
        </Button>
      </div>
      <p className="text-xs text-soft">
        {t('Erase what should be gone; Restore brings back the original.')}{' '}
        <span className="pointer-coarse:hidden">{t('Scroll to zoom; hold Space and drag to pan.')}</span>
        <span className="hidden pointer-coarse:inline">{t('Use two fingers to zoom and pan.')}</span>
      </p>
    </div>
  );
}
