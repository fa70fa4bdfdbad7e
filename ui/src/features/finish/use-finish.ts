import { useState } from 'react';
import { add, emptyHistory, type History, redo, type Stroke, undo } from '@/features/mask/marks';
import { type Look, plainLook } from './look';
import { useBackgroundUrl } from './use-background-url';

export const brushSizes = [12, 30, 60] as const;

/** `restore` brings back the original. `size` is in screen pixels. */
export type TouchUpBrush = { tool: 'erase' | 'restore' | 'move'; size: number };

export type TouchUp = {
  strokes: Stroke[];
  canUndo: boolean;
  canRedo: boolean;
  draw: (stroke: Stroke) => void;
  undo: () => void;
  redo: () => void;
  reset: () => void;
};

export type Finish = ReturnType<typeof useFinish>;

/** How the results of this page are finished: one look for all of them, and a touch-up for each. */
export function useFinish() {
  const [look, setLook] = useState<Look>(plainLook);
  useBackgroundUrl(look.background);
  const [histories, setHistories] = useState<Record<string, History>>({});
  const [brush, setBrush] = useState<TouchUpBrush>({ tool: 'erase', size: brushSizes[1] });
  const [isTouchingUp, setTouchingUp] = useState(false);
  /** The strokes of each result that were last saved as a file. */
  const [saved, setSaved] = useState<Record<string, unknown>>({});

  function touchUpOf(resultId: string): TouchUp {
    const history = histories[resultId] ?? emptyHistory;
    const change = (next: (old: History) => History) =>
      setHistories((all) => ({ ...all, [resultId]: next(all[resultId] ?? emptyHistory) }));
    return {
      strokes: strokesOf(history),
      canUndo: history.done.length > 0,
      canRedo: history.undone.length > 0,
      draw: (stroke) => change((old) => add(old, stroke)),
      undo: () => change(undo),
      redo: () => change(redo),
      // A step like any other: Undo brings the strokes back.
      reset: () => change((old) => add(old, { kind: 'clear' })),
    };
  }

  return {
    look,
    setLook,
    brush,
    changeBrush: (change: Partial<TouchUpBrush>) => setBrush((old) => ({ ...old, ...change })),
    isTouchingUp,
    setTouchingUp,
    touchUpOf,
    /** Records that the strokes of a result are in a file. */
    setSaved: (resultId: string) => setSaved((all) => ({ ...all, [resultId]: histories[resultId]?.done })),
    /** Whether strokes on one of these results would be lost with the page. */
    isUnsavedIn: (results: { imageId: string }[]) =>
      results.some(({ imageId }) => {
        const history = histories[imageId];
        return history && strokesOf(history).length > 0 && saved[imageId] !== history.done;
      }),
  };
}

/** Returns the strokes drawn since the last reset: the same array as long as nothing changes. */
function strokesOf({ done }: History): Stroke[] {
  const cached = strokesCache.get(done);
  if (cached) return cached;
  const reset = done.findLastIndex(({ kind }) => kind === 'clear');
  const strokes = done
    .slice(reset + 1)
    .filter((mark): mark is Stroke => mark.kind === 'paint' || mark.kind === 'erase');
  strokesCache.set(done, strokes);
  return strokes;
}

const strokesCache = new WeakMap<History['done'], Stroke[]>();
