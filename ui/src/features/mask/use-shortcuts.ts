import { type RefObject, useEffect, useEffectEvent, useRef } from 'react';
import type { ViewControl } from '@/components/pan-zoom/use-view';
import { isTextField } from '@/lib/text-field';

type ShortcutActions = {
  undo: () => void;
  redo: () => void;
  control: ViewControl;
  /** What the letter keys do, in addition to the keys that zoom. */
  letters: Record<string, () => void>;
};

/**
 * Ctrl+Z or ⌘Z works on the whole page except in text fields, which have their own undo. Letter keys work only while
 * the editor has the focus: speech input could trigger them elsewhere.
 */
export function useShortcuts(editor: RefObject<HTMLElement | null>, actions: ShortcutActions) {
  const isSpaceDown = useRef(false);

  const press = useEffectEvent((event: KeyboardEvent) => {
    if (isTextField(event.target)) return;
    if (event.ctrlKey || event.metaKey) {
      const letter = latinLetter(event);
      const isRedo = letter === 'y' || (event.shiftKey && letter === 'z');
      if (!isRedo && letter !== 'z') return;
      event.preventDefault();
      return isRedo ? actions.redo() : actions.undo();
    }
    if (event.altKey || !editor.current?.contains(document.activeElement)) return;
    if (event.key === ' ') {
      // There, Space is a click.
      if (event.target instanceof HTMLElement && event.target.closest('button, label, input, summary'))
        return;
      event.preventDefault();
      isSpaceDown.current = true;
      editor.current.dataset.moving = '';
    }
    const action = letterActions(actions)[latinLetter(event)];
    if (!action) return;
    event.preventDefault();
    action();
  });

  useEffect(() => {
    const down = (event: KeyboardEvent) => press(event);
    const releaseSpace = () => {
      isSpaceDown.current = false;
      delete editor.current?.dataset.moving;
    };
    const up = (event: KeyboardEvent) => event.key === ' ' && releaseSpace();
    window.addEventListener('keydown', down);
    window.addEventListener('keyup', up);
    window.addEventListener('blur', releaseSpace);
    return () => {
      window.removeEventListener('keydown', down);
      window.removeEventListener('keyup', up);
      window.removeEventListener('blur', releaseSpace);
    };
  }, [editor]);

  return isSpaceDown;
}

/** The letter of a shortcut. Where the keyboard types other letters, the position of the key counts. */
function latinLetter({ key, code }: KeyboardEvent): string {
  const isLatin = key.length > 1 || key.charCodeAt(0) < 128;
  if (isLatin) return key.toLowerCase();
  return code.startsWith('Key') ? code.slice(3).toLowerCase() : (placesOfSigns[code] ?? '');
}

const placesOfSigns: Record<string, string> = {
  BracketLeft: '[',
  BracketRight: ']',
  Equal: '=',
  Minus: '-',
  Digit0: '0',
};

function letterActions({ control, letters }: ShortcutActions): Record<string, () => void> {
  return {
    ...letters,
    '+': control.zoomIn,
    '=': control.zoomIn,
    '-': control.zoomOut,
    '0': control.fit,
  };
}
