import { type RefObject, useEffect, useEffectEvent, useRef } from 'react';
import type { ViewControl } from '@/components/pan-zoom/use-view';
import { brushSizes, useMaskStore } from './mask-store';

type ShortcutActions = { undo: () => void; redo: () => void; control: ViewControl };

/**
 * Ctrl+Z or ⌘Z works on the whole page except in text fields, which have their own undo. Letter keys work only while
 * the editor has the focus: speech input could trigger them elsewhere.
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
    const action = letterActions(actions.control)[event.key.toLowerCase()];
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

function letterActions(control: ViewControl): Record<string, () => void> {
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
