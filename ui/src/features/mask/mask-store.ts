import { create } from 'zustand';
import { type PersistStorage, persist } from 'zustand/middleware';
import { add, emptyHistory, type History, type Mark, redo, type Stroke, undo } from './marks';

export const brushSizes = [10, 20, 30] as const;
type BrushSize = (typeof brushSizes)[number];
/** What the pointer does: paint, erase, draw around an area, select what it clicks on, or move the image in its frame. */
export type Brush = Stroke['kind'] | 'lasso' | 'select' | 'move';

/** The mask and the prompt that the user is preparing for one image. */
type Draft = History & {
  prompt: string;
  /** Whether nothing outside the mask may change; undefined leaves it to what the prompt means. */
  isExact?: boolean;
  /** A run was started with this mask: the next stroke starts a new one. */
  isSubmitted: boolean;
};

type MaskStore = {
  brushSize: BrushSize;
  brush: Brush;
  /** A click of the select tool takes away instead of adding. */
  takesAway: boolean;
  /** By image id, the most recently changed last. */
  drafts: Record<string, Draft>;
};

const STORAGE_KEY = 'retouch-magic-fix';
const MAX_DRAFTS = 8;
const WRITE_DELAY_MS = 250;

const emptyDraft: Draft = { ...emptyHistory, prompt: '', isSubmitted: false };

const emptyStore: MaskStore = { brushSize: 20, brush: 'paint', takesAway: false, drafts: {} };

export const useMaskStore = create<MaskStore>()(
  persist((): MaskStore => emptyStore, {
    name: STORAGE_KEY,
    version: 2,
    // What an older version stored in this tab does not fit: start over.
    migrate: (): MaskStore => emptyStore,
    storage: tabStorage(),
    partialize: ({ brushSize, drafts }) => ({ ...emptyStore, brushSize, drafts }),
  }),
);

export function useDraft(imageId: string): Draft {
  return useMaskStore(({ drafts }) => drafts[imageId] ?? emptyDraft);
}

/** The actions that change the draft of one image. */
export function draftActions(imageId: string) {
  function update(change: (draft: Draft) => Partial<Draft>) {
    useMaskStore.setState(({ drafts }) => {
      const { [imageId]: draft = emptyDraft, ...others } = drafts;
      const recent = Object.entries(others).slice(1 - MAX_DRAFTS);
      return { drafts: { ...Object.fromEntries(recent), [imageId]: { ...draft, ...change(draft) } } };
    });
  }

  return {
    mark: (mark: Mark) =>
      update((draft) => {
        // Erasing continues the submitted mask; anything that adds to it starts a new one.
        const isAdded = mark.kind === 'paint' || (mark.kind === 'area' && !mark.erases);
        const startsNewMask = draft.isSubmitted && isAdded;
        return { ...add(draft, startsNewMask ? { ...mark, startsNewMask } : mark), isSubmitted: false };
      }),
    undo: () => update((draft) => ({ ...undo(draft), isSubmitted: false })),
    redo: () => update((draft) => ({ ...redo(draft), isSubmitted: false })),
    setPrompt: (prompt: string) => update(() => ({ prompt })),
    setExact: (isExact: boolean) => update(() => ({ isExact })),
    setSubmitted: (isSubmitted: boolean) => update(() => ({ isSubmitted })),
  };
}

/**
 * The session storage of the tab: it survives a reload and ends with the tab. Writes are delayed, so that typing does
 * not serialize long masks with every letter, and flushed when the user leaves the page.
 */
function tabStorage<T>(): PersistStorage<T> {
  let pending: (() => void) | null = null;
  let timer: ReturnType<typeof setTimeout>;
  const flush = () => {
    clearTimeout(timer);
    pending?.();
    pending = null;
  };
  window.addEventListener('pagehide', flush);
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
      timer = setTimeout(flush, WRITE_DELAY_MS);
      pending = () => {
        try {
          sessionStorage.setItem(name, JSON.stringify(value));
        } catch {
          // Storage is full or blocked: the draft lasts as long as the page.
        }
      };
    },
    removeItem: (name) => sessionStorage.removeItem(name),
  };
}
