import { create } from 'zustand';
import type { ToolAction } from '@/features/catalog/tool';
import type { Count, Image, Result, ToolName } from '@/lib/api-types';
import type { ImageSize } from '@/lib/image-size';
import { onSignOut, STORED_BATCHES } from '@/lib/sign-out-cleanup';
import { t } from '@/lib/translate';
import type { PauseCause } from '@/lib/with-retries';

/** A batch: several files for one action of a tool. */
export type Batch = {
  /** The user it belongs to: another account may sign in to the same tab. */
  owner: string | null;
  /** Null until the user chooses one or starts the batch: until then, the default for its files counts. */
  action: ToolAction | null;
  hasStarted: boolean;
  /** Whether it had ended before a reload. */
  hadEnded?: boolean;
  items: BatchItem[];
};

export type BatchItem = {
  id: string;
  name: string;
  bytes: number;
  /** Null after a reload: a page cannot reopen a file. */
  file: File | null;
  /** Object URL of the file. */
  previewUrl: string | null;
  size: ImageSize | null;
  /** The idempotency key of the run; a retry after a lost connection finds the existing job by it. */
  key: string;
  /** Whether the user retries a run that the API may have. */
  isRepeat?: boolean;
  /** Whether the API may have its run, because no answer to the request has come. */
  isSent?: boolean;
  image: Pick<Image, 'id'> | null;
  jobId: string | null;
  state: ItemState;
};

export type ItemState =
  | { kind: 'checking' }
  | { kind: 'ready' }
  /** Rejected before upload. */
  | { kind: 'rejected'; reason: string }
  | { kind: 'waiting' }
  | { kind: 'uploading'; fraction: number }
  /** Waits for the server or the network and then continues automatically. */
  | { kind: 'paused'; cause: PauseCause }
  | { kind: 'queued'; position: number | null; etaSeconds: number | null }
  | { kind: 'running'; fraction: number | null; count: Count | null; etaSeconds: number | null }
  | { kind: 'done'; result: Result }
  /** `isFinal`: the same file would fail again. */
  | { kind: 'failed'; reason: string; isFinal?: boolean }
  | { kind: 'canceled' }
  /** Not started: not enough credits. */
  | { kind: 'unpaid' };

type BatchStore = Partial<Record<ToolName, Batch>>;

/** Outside the component tree, so that a batch continues while another page is open. */
export const useBatches = create<BatchStore>(restoreBatches);

export function updateBatch(tool: ToolName, change: (batch: Batch) => Partial<Batch>) {
  const batch = useBatches.getState()[tool];
  if (batch) useBatches.setState({ [tool]: { ...batch, ...change(batch) } });
}

export function updateItem(tool: ToolName, id: string, change: Partial<BatchItem>) {
  updateBatch(tool, ({ items }) => {
    const changed = items.map((item) => (item.id === id ? { ...item, ...change } : item));
    const { state } = change;
    return { items: state && hasProblem({ state }) ? raise(changed, id) : changed };
  });
}

/** Moves an item up to the other problems, so that no long list hides it. It stays there when it is tried again. */
function raise(items: BatchItem[], id: string): BatchItem[] {
  const others = items.filter((item) => item.id !== id);
  const firstGood = others.findIndex((item) => !hasProblem(item));
  const place = firstGood < 0 ? others.length : firstGood;
  return [...others.slice(0, place), ...items.filter((item) => item.id === id), ...others.slice(place)];
}

export function hasProblem({ state: { kind } }: Pick<BatchItem, 'state'>): boolean {
  return ['rejected', 'failed', 'unpaid'].includes(kind);
}

export function closeBatch(tool: ToolName) {
  for (const { previewUrl } of useBatches.getState()[tool]?.items ?? []) {
    if (previewUrl) URL.revokeObjectURL(previewUrl);
  }
  useBatches.setState({ [tool]: undefined });
}

/** Whether the item would be lost if the page were closed now. */
export function isUnsent({ image, state: { kind } }: BatchItem): boolean {
  return ['waiting', 'uploading', 'paused'].includes(kind) || (kind === 'unpaid' && !image);
}

/** Whether the user can try the item again, which needs its file or the uploaded image. */
export function canRetry({ file, image, state }: Pick<BatchItem, 'file' | 'image' | 'state'>): boolean {
  if (!file && !image) return false;
  if (state.kind === 'failed') return !state.isFinal;
  return state.kind === 'unpaid' || state.kind === 'canceled';
}

export const isReady = ({ state }: BatchItem) => state.kind === 'ready';

/** Whether the item stays as it is unless the user retries it. */
export function isFinished({ state: { kind } }: BatchItem): boolean {
  return ['rejected', 'done', 'failed', 'canceled', 'unpaid'].includes(kind);
}

onSignOut(() => {
  for (const tool of Object.keys(useBatches.getState())) closeBatch(tool as ToolName);
});

/** Reads what survives a reload: `keep-batches.ts` has written it. */
export function restoreBatches(): BatchStore {
  try {
    const stored: BatchStore = JSON.parse(sessionStorage.getItem(STORED_BATCHES) ?? '{}');
    const sent = Object.entries(stored).flatMap(([tool, batch]) => {
      const kept = batch?.hasStarted ? batch.items.filter(isKept) : [];
      const restored = { ...batch, items: kept.map(restoreItem), hadEnded: kept.every(isFinished) };
      return kept.length > 0 ? [[tool, restored]] : [];
    });
    return Object.fromEntries(sent);
  } catch {
    return {};
  }
}

/** Files that were rejected, failed, or not covered by the credits stay in the list, at least by name. */
function isKept({ jobId, image, state: { kind } }: BatchItem): boolean {
  return jobId !== null || image !== null || ['failed', 'unpaid', 'rejected'].includes(kind);
}

function restoreItem(item: BatchItem): BatchItem {
  const { state, image, jobId } = item;
  const couldStart = state.kind === 'unpaid' || (state.kind === 'failed' && !state.isFinal);
  if (couldStart && !image && !jobId)
    return { ...item, state: { kind: 'rejected', reason: t('Not started: choose this file again') } };
  // Its job knows the current state, with picture URLs that have not expired.
  if (jobId) return { ...item, state: { kind: 'queued', position: null, etaSeconds: null } };
  if (isFinished(item)) return item;
  // Spends no credits without a click. If the job exists after all, a retry finds it by its key.
  const reason = item.isSent
    ? t('May have started before the reload: retry to see the run')
    : t('Not started before the reload');
  return { ...item, state: { kind: 'failed', reason } };
}
