const shortcuts: [keys: string[], what: string][] = [
  [['B'], 'Brush'],
  [['E'], 'Eraser'],
  [['H'], 'Move the image; or hold Space'],
  [['[', ']'], 'Smaller or larger brush'],
  [['Ctrl+Z'], 'Undo'],
  [['Ctrl+Shift+Z'], 'Redo'],
  [['+', '−'], 'Zoom in or out'],
  [['0'], 'Fit'],
  [['Arrow keys'], 'Move the brush; finer with Shift'],
  [['Enter'], 'Begin and end a stroke'],
  [['Ctrl+Enter'], 'Start, from the prompt'],
];

/** What the keyboard can do here. Where there is none, nothing is said of it. */
export function MaskShortcuts() {
  return (
    <details className="text-sm text-soft pointer-coarse:hidden">
      <summary className="w-fit thumb:py-3 cursor-pointer rounded-sm font-medium underline-offset-4 hover:text-ink hover:underline">
        Keyboard shortcuts
      </summary>
      <p className="mt-2">Letters work while the drawing area has the focus. On a Mac, Ctrl is ⌘.</p>
      <dl className="mt-2 grid grid-cols-[auto_1fr] gap-x-4 gap-y-1.5 sm:grid-cols-[auto_1fr_auto_1fr]">
        {shortcuts.map(([keys, what]) => (
          <div key={what} className="col-span-2 grid grid-cols-subgrid items-baseline">
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
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
    </details>
  );
}
