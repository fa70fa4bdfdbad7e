const shortcuts: [keys: string[], action: string][] = [
  [['B'], 'Brush'],
  [['E'], 'Eraser'],
  [['S'], 'Select what you click on'],
  [['Alt'], 'Take away with a click (or Alt+Enter)'],
  [['L'], 'Lasso'],
  [['I'], 'Invert: select everything else'],
  [['Shift'], 'Straight line (while drawing)'],
  [['H'], 'Move the image (or hold Space)'],
  [['[', ']'], 'Smaller or larger brush'],
  [['Ctrl+Z'], 'Undo'],
  [['Ctrl+Shift+Z'], 'Redo'],
  [['+', '−'], 'Zoom in or out'],
  [['0'], 'Fit'],
  [['Arrow keys'], 'Move the brush (Shift: fine steps)'],
  [['Enter'], 'Start and end a stroke, or select'],
  [['Ctrl+Enter'], 'Start the run (in the prompt)'],
];

/** Hidden on devices without a keyboard. */
export function MaskShortcuts() {
  return (
    <details className="text-sm text-soft pointer-coarse:hidden">
      <summary className="w-fit thumb:py-3 cursor-pointer rounded-sm font-medium underline-offset-4 hover:text-ink hover:underline">
        Keyboard shortcuts
      </summary>
      <p className="mt-2">
        Letter keys work while the drawing area has the focus. On a Mac, use ⌘ instead of Ctrl.
      </p>
      <dl className="mt-2 grid grid-cols-[auto_1fr] gap-x-4 gap-y-1.5 sm:grid-cols-[auto_1fr_auto_1fr]">
        {shortcuts.map(([keys, action]) => (
          <div key={action} className="col-span-2 grid grid-cols-subgrid items-baseline">
            <dt className="flex gap-1">
              {keys.map((key) => (
                <kbd
                  key={key}
                  className="rounded-sm border border-line bg-surface px-1.5 py-0.5 font-sans text-xs font-medium text-ink"
                >
                  {key}
                </kbd>
              ))}
            </dt>
            <dd>{action}</dd>
          </div>
        ))}
      </dl>
    </details>
  );
}
