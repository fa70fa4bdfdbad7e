import { create } from 'zustand';
import { type PersistStorage, persist } from 'zustand/middleware';
import { add, emptyHistory, type History, type Mark, redo, type Stroke, undo } from './marks';

export const brushSizes = [10, 20, 30] as const;
export type BrushSize = (typeof brushSizes)[number];
/** What the pointer does: draw, take away, or move the image in its frame. */
export type Brush = Stroke['kind'] | 'move';

/** What somebody has prepared for one image. */
export type Work = History & {
  prompt: string;
  /** A run was started with this mask: the next stroke begins a new one. */
  isSpent: boolean;
};

type MaskStore = {
  brushSize: BrushSize;
  brush: Brush;
  /** By the image's id, the one that was worked on last at the end. */
  works: Record<string, Work>;
};

const KEY = 'retouch-magic-fix';
/** Of how many images the work is kept. */
const KEPT = 8;
const PAUSE_MS = 250;

const emptyWork: Work = { ...emptyHistory, prompt: '', isSpent: false };

export const useMaskStore = create<MaskStore>()(
  persist((): MaskStore => ({ brushSize: 20, brush: 'paint', works: {} }), {
    name: KEY,
    version: 1,
    storage: tabStorage(),
    partialize: ({ brushSize, works }) => ({ brushSize, brush: 'paint' as const, works }),
  }),
);

export function useWork(imageId: string): Work {
  return useMaskStore(({ works }) => works[imageId] ?? emptyWork);
}

/** All that can be done to the work on one image. */
export function workOf(imageId: string) {
  function update(change: (work: Work) => Partial<Work>) {
    useMaskStore.setState(({ works }) => {
      const { [imageId]: work = emptyWork, ...others } = works;
      const kept = Object.entries(others).slice(1 - KEPT);
      return { works: { ...Object.fromEntries(kept), [imageId]: { ...work, ...change(work) } } };
    });
  }

  return {
    mark: (mark: Mark) =>
      update((work) => {
        // Erasing goes on with the mask that is there; whatever adds to it begins a new one.
        const isFresh = work.isSpent && (mark.kind === 'paint' || mark.kind === 'area');
        return { ...add(work, isFresh ? { ...mark, isFresh } : mark), isSpent: false };
      }),
    undo: () => update((work) => ({ ...undo(work), isSpent: false })),
    redo: () => update((work) => ({ ...redo(work), isSpent: false })),
    setPrompt: (prompt: string) => update(() => ({ prompt })),
    setSpent: (isSpent: boolean) => update(() => ({ isSpent })),
  };
}

/**
 * The tab's own storage: it outlives a reload and ends with the tab. Written a moment after the last change
 * and when the page is left, so that typing does not write long masks again with each letter.
 */
function tabStorage<T>(): PersistStorage<T> {
  let waiting: (() => void) | null = null;
  let timer: ReturnType<typeof setTimeout>;
  const write = () => {
    clearTimeout(timer);
    waiting?.();
    waiting = null;
  };
  window.addEventListener('pagehide', write);
  return {
    getItem: (name) => {
      try {
        return JSON.parse(sessionStorage.getItem(name) ?? 'null');
      } catch {
        return null;
      }
    },
    setItem: (name, value) => {
      clearTimeout(timer);
      timer = setTimeout(write, PAUSE_MS);
      waiting = () => {
        try {
          sessionStorage.setItem(name, JSON.stringify(value));
        } catch {
          // No room, or no storage at all: the work lives as long as the page.
        }
      };
    },
    removeItem: (name) => sessionStorage.removeItem(name),
  };
}
