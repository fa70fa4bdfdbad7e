import { Disclosure } from '@/components/disclosure';
import { type Message, msg, t } from '@/lib/translate';

const shortcuts: [keys: (string | Message)[], action: Message][] = [
  [['B'], msg('Brush')],
  [['E'], msg('Eraser')],
  [['S'], msg('Select what you click on')],
  [['Alt'], msg('Take away with a click (or Alt+Enter)')],
  [['L'], msg('Lasso')],
  [['I'], msg('Invert: select everything else')],
  [['Shift'], msg('Straight line (while drawing)')],
  [['H'], msg('Move the image (or hold Space)')],
  [['[', ']'], msg('Smaller or larger brush')],
  [['Ctrl+Z'], msg('Undo')],
  [['Ctrl+Shift+Z'], msg('Redo')],
  [['+', '−'], msg('Zoom in or out')],
  [['0'], msg('Fit')],
  [[msg('Arrow keys')], msg('Move the brush (Shift: fine steps)')],
  [['Enter'], msg('Start and end a stroke, or select')],
  [['Ctrl+Enter'], msg('Start the run (in the prompt)')],
];

/** Hidden on devices without a keyboard. */
export function MaskShortcuts() {
  return (
    <Disclosure label={t('Keyboard shortcuts')} className="pointer-coarse:hidden">
      <p className="mt-2">
        {t('Letter keys work while the drawing area has the focus. On a Mac, use ⌘ instead of Ctrl.')}
      </p>
      <dl className="mt-2 grid grid-cols-[auto_1fr] gap-x-4 gap-y-1.5 sm:grid-cols-[auto_1fr_auto_1fr]">
        {shortcuts.map(([keys, action]) => (
          <div key={keys.join()} className="col-span-2 grid grid-cols-subgrid items-baseline">
            <dt className="flex gap-1">
              {keys.map((key) => (
                <kbd
                  key={t(key)}
                  className="rounded-sm border border-line bg-surface px-1.5 py-0.5 font-sans text-xs font-medium text-ink"
                >
                  {t(key)}
                </kbd>
              ))}
            </dt>
            <dd>{t(action)}</dd>
          </div>
        ))}
      </dl>
    </Disclosure>
  );
}
