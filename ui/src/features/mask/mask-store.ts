import { create } from 'zustand';
import { type PersistStorage, persist, type StorageValue } from 'zustand/middleware';
import { onSignOut } from '@/lib/sign-out-cleanup';
import { add, type Clicks, emptyHistory, type History, type Mark, redo, type Stroke, undo } from './marks';

export const brushSizes = [10, 20, 30] as const;
type BrushSize = (typeof brushSizes)[number];
/** The chosen tool: it paints, erases, draws around an area, selects objects, or moves the image in its frame. */
export type Brush = Stroke['kind'] | 'lasso' | 'select' | 'move';

/** The mask and the prompt that the user is preparing for one picture. */
type Draft = History & {
  prompt: string;
  /** Whether nothing outside the mask may change; if undefined, the meaning of the prompt decides. */
  isExact?: boolean;
  /** A run was started with this mask: the next stroke starts a new one. */
  isSubmitted: boolean;
  /** The run that was started last, and how many marks it got. */
  run?: { jobId: string; marks: number } | undefined;
  /** The result that Undo came back from: Redo goes there. */
  next?: PlaceOfResult | undefined;
};

/** A result, and the image whose results it is among. */
export type PlaceOfResult = { imageId: string; resultId: string };

/** A pending selection: its clicks, and how it will change the mask. */
export type Selection = {
  clicks: Clicks;
  erases: boolean;
  /** The earlier selections that it replaces, because its clicks contain theirs. */
  contains: Clicks[];
  request: AbortController;
  /** The answer, which an earlier selection still holds up; null if it failed. */
  spans?: number[] | null;
};

type MaskStore = {
  brushSize: BrushSize;
  brush: Brush;
  /** A click of the select tool takes away instead of adding. */
  takesAway: boolean;
  /** What the shown picture's mask still waits for, in the order of the clicks. */
  selections: Selection[];
  /** By picture, which is an image or a result; the most recently changed last. */
  drafts: Record<string, Draft>;
};

const STORAGE_KEY = 'retouch-magic-fix';
const MAX_DRAFTS = 20;
const WRITE_DELAY_MS = 250;

const emptyDraft: Draft = { ...emptyHistory, prompt: '', isSubmitted: false };

const emptyStore: MaskStore = {
  brushSize: 20,
  brush: 'paint',
  takesAway: false,
  selections: [],
  drafts: {},
};

export const useMaskStore = create<MaskStore>()(
  persist((): MaskStore => emptyStore, {
    name: STORAGE_KEY,
    version: 2,
    // Data that an older version stored in this tab does not fit: start over.
    migrate: (): MaskStore => emptyStore,
    storage: tabStorage(),
    partialize: ({ brushSize, drafts }) => ({ ...emptyStore, brushSize, drafts }),
  }),
);

onSignOut(() => useMaskStore.setState(emptyStore));

export function useDraft(picture: string): Draft {
  return useMaskStore(({ drafts }) => drafts[picture] ?? emptyDraft);
}

function updateDraft(picture: string, change: (draft: Draft) => Partial<Draft>) {
  useMaskStore.setState(({ drafts }) => {
    const { [picture]: draft = emptyDraft, ...others } = drafts;
    const recent = Object.entries(others).slice(1 - MAX_DRAFTS);
    return { drafts: { ...Object.fromEntries(recent), [picture]: { ...draft, ...change(draft) } } };
  });
}

/**
 * Starts the draft of the result of the last run: the same prompt, and only the marks made since that run started,
 * which were meant for the next one.
 */
export function continueDraft(picture: string, result: PlaceOfResult) {
  const { done, prompt, isExact, run } = useMaskStore.getState().drafts[picture] ?? emptyDraft;
  const marks = run?.marks ?? done.length;
  const later = done.slice(marks);
  updateDraft(picture, (draft) => ({
    done: done.slice(0, marks),
    undone: later.length > 0 ? [] : draft.undone,
    run: undefined,
    next: result,
  }));
  updateDraft(result.resultId, () => ({
    ...emptyDraft,
    prompt,
    ...(isExact !== undefined && { isExact }),
    done: later,
  }));
}

/** After a run that produced nothing, its mask is editable again, even if Undo has since moved to another picture. */
export function dropRun(jobId: string) {
  for (const [picture, { run }] of Object.entries(useMaskStore.getState().drafts)) {
    if (run?.jobId === jobId) updateDraft(picture, () => ({ isSubmitted: false, run: undefined }));
  }
}

/** The actions that change the draft of one picture. */
export function draftActions(picture: string) {
  const update = (change: (draft: Draft) => Partial<Draft>) => updateDraft(picture, change);

  return {
    mark: (mark: Mark) =>
      update((draft) => {
        // Erasing continues the submitted mask; anything that adds to it starts a new one.
        const isAdded = mark.kind === 'paint' || (mark.kind === 'area' && !mark.erases);
        const startsNewMask = draft.isSubmitted && isAdded;
        const history = add(draft, startsNewMask ? { ...mark, startsNewMask } : mark);
        // Undo has taken back some of the run's marks, and Redo cannot bring them back anymore.
        const run = draft.run && { ...draft.run, marks: Math.min(draft.run.marks, draft.done.length) };
        return { ...history, run, isSubmitted: false, next: undefined };
      }),
    undo: () => update((draft) => ({ ...undo(draft), isSubmitted: false })),
    redo: () => update((draft) => ({ ...redo(draft), isSubmitted: false })),
    setPrompt: (prompt: string) => update(() => ({ prompt })),
    setExact: (isExact: boolean) => update(() => ({ isExact })),
    /** Records the run that was started with these marks. Others came while it was being sent. */
    setRun: (jobId: string, sent: Mark[]) =>
      update(({ done }) => {
        const other = done.findIndex((mark, index) => mark !== sent[index]);
        const marks = other < 0 ? sent.length : other;
        return { isSubmitted: done.length <= marks, run: { jobId, marks } };
      }),
    /** Undo has come back to this picture: its mask can be changed again. */
    comeBack: (next: PlaceOfResult) => update(() => ({ isSubmitted: false, next })),
  };
}

/** Returns the newer half of the drafts; null if there is only one. */
function newerDrafts(stored: StorageValue<MaskStore>): StorageValue<MaskStore> | null {
  const drafts = Object.entries(stored.state.drafts);
  if (drafts.length < 2) return null;
  const newer = Object.fromEntries(drafts.slice(Math.ceil(drafts.length / 2)));
  return { ...stored, state: { ...stored.state, drafts: newer } };
}

/**
 * The session storage of the tab: it survives a reload and ends with the tab. Writes are delayed, so that typing does
 * not serialize long masks with every letter, and flushed when the user leaves the page.
 */
function tabStorage(): PersistStorage<MaskStore> {
  let pending: (() => void) | null = null;
  let timer: ReturnType<typeof setTimeout>;
  const flush = () => {
    clearTimeout(timer);
    pending?.();
    pending = null;
  };
  window.addEventListener('pagehide', flush);
  // A phone may stop a hidden page at once, and never show it again.
  document.addEventListener('visibilitychange', flush);
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
        // Selections in large images take megabytes, and a tab has five.
        for (let some: typeof value | null = value; some; some = newerDrafts(some)) {
          try {
            return sessionStorage.setItem(name, JSON.stringify(some));
          } catch {
            // Storage is full or blocked. Drafts that do not fit last as long as the page.
          }
        }
      };
    },
    removeItem: (name) => sessionStorage.removeItem(name),
  };
}
