import { type RefObject, useEffect, useEffectEvent, useRef } from 'react';
import { brushSizes, useMaskStore } from './mask-store';
import type { ViewControl } from './use-view';

type ShortcutActions = { undo: () => void; redo: () => void; control: ViewControl };

/**
 * Ctrl or Cmd+Z works on the whole page except in a text field, which has its own. Single letters count only
 * while the editor has the focus, so that they surprise nobody who talks to the computer.
 */
export function useShortcuts(editor: RefObject<HTMLElement | null>, actions: ShortcutActions) {
  const isSpaceDown = useRef(false);

  const press = useEffectEvent((event: KeyboardEvent) => {
    if (isTextField(event.target)) return;
    if (event.ctrlKey || event.metaKey) {
      const isRedo = event.key === 'y' || (event.shiftKey && event.key.toLowerCase() === 'z');
      if (!isRedo && event.key !== 'z') return;
      event.preventDefault();
      return isRedo ? actions.redo() : actions.undo();
    }
    if (event.altKey || !editor.current?.contains(document.activeElement)) return;
    if (event.key === ' ') {
      // On a button, Space is a click.
      if (event.target instanceof HTMLElement && event.target.closest('button, label, input')) return;
      event.preventDefault();
      isSpaceDown.current = true;
      editor.current.dataset.moving = '';
    }
    const act = letters(actions.control)[event.key.toLowerCase()];
    if (!act) return;
    event.preventDefault();
    act();
  });

  useEffect(() => {
    const down = (event: KeyboardEvent) => press(event);
    const rest = () => {
      isSpaceDown.current = false;
      delete editor.current?.dataset.moving;
    };
    const up = (event: KeyboardEvent) => event.key === ' ' && rest();
    window.addEventListener('keydown', down);
    window.addEventListener('keyup', up);
    window.addEventListener('blur', rest);
    return () => {
      window.removeEventListener('keydown', down);
      window.removeEventListener('keyup', up);
      window.removeEventListener('blur', rest);
    };
  }, [editor]);

  return isSpaceDown;
}

function letters(control: ViewControl): Record<string, () => void> {
  return {
    b: () => useMaskStore.setState({ brush: 'paint' }),
    e: () => useMaskStore.setState({ brush: 'erase' }),
    h: () => useMaskStore.setState({ brush: 'move' }),
    '[': () => changeSize(-1),
    ']': () => changeSize(1),
    '+': control.zoomIn,
    '=': control.zoomIn,
    '-': control.zoomOut,
    '0': control.fit,
  };
}

function changeSize(by: -1 | 1) {
  const at = brushSizes.indexOf(useMaskStore.getState().brushSize);
  const brushSize = brushSizes[Math.min(brushSizes.length - 1, Math.max(0, at + by))];
  if (brushSize) useMaskStore.setState({ brushSize });
}

function isTextField(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement && target.closest('textarea, select, input:not([type=radio])') !== null
  );
}
