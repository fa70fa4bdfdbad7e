import { create } from 'zustand';
import type { Count, Image, Result, ToolName } from '@/lib/api-types';
import { whenForgotten } from '@/lib/forget';
import type { ImageSize } from '@/lib/image-size';
import type { ToolAction } from '../tool';

/** Several files that one tool is to work on. */
export type Batch = {
  /** Whose it is: a tab may see another account after this one. */
  owner: string | null;
  action: ToolAction;
  hasStarted: boolean;
  items: BatchItem[];
};

export type BatchItem = {
  id: string;
  name: string;
  bytes: number;
  /** Null after a reload: a browser gives no file twice. */
  file: File | null;
  /** An address of the file, to show it by. */
  address: string | null;
  size: ImageSize | null;
  /** One key a click; a repeat of a lost call joins the run that exists. */
  key: string;
  image: Pick<Image, 'id'> | null;
  jobId: string | null;
  state: ItemState;
};

export type ItemState =
  | { kind: 'checking' }
  | { kind: 'ready' }
  /** Found unfit before anything was sent. */
  | { kind: 'refused'; reason: string }
  | { kind: 'waiting' }
  | { kind: 'uploading'; fraction: number }
  /** It goes on by itself: when the server has room again, or when there is a network again. */
  | { kind: 'held'; by: 'server' | 'network' }
  | { kind: 'queued'; position: number | null; etaSeconds: number | null }
  | { kind: 'running'; fraction: number | null; count: Count | null; etaSeconds: number | null }
  | { kind: 'done'; result: Result }
  | { kind: 'failed'; reason: string }
  | { kind: 'cancelled' }
  | { kind: 'unpaid' };

type BatchStore = Partial<Record<ToolName, Batch>>;

const KEY = 'retouch-batches';

/** Outside of the page, so that a batch goes on while its page is not looked at. */
export const useBatches = create<BatchStore>(keptBatches);

export function updateBatch(tool: ToolName, change: (batch: Batch) => Partial<Batch>) {
  const batch = useBatches.getState()[tool];
  if (batch) useBatches.setState({ [tool]: { ...batch, ...change(batch) } });
}

export function updateItem(tool: ToolName, id: string, change: Partial<BatchItem>) {
  updateBatch(tool, ({ items }) => ({
    items: items.map((item) => (item.id === id ? { ...item, ...change } : item)),
  }));
}

export function closeBatch(tool: ToolName) {
  for (const { address } of useBatches.getState()[tool]?.items ?? []) {
    if (address) URL.revokeObjectURL(address);
  }
  useBatches.setState({ [tool]: undefined });
}

/** Whether a page that goes away takes it along. */
export function isUnsent({ state: { kind } }: BatchItem): boolean {
  return ['waiting', 'uploading', 'held'].includes(kind);
}

/** Whether nothing more will become of it unless somebody asks. */
export function isOver({ state: { kind } }: BatchItem): boolean {
  return ['refused', 'done', 'failed', 'cancelled', 'unpaid'].includes(kind);
}

whenForgotten(() => {
  for (const tool of Object.keys(useBatches.getState())) closeBatch(tool as ToolName);
});

// What the server knows of outlives a reload of this tab; files that were never sent do not.
useBatches.subscribe((batches) => {
  try {
    const kept = JSON.stringify(batches, (name, value) =>
      name === 'file' || name === 'address' ? null : value,
    );
    if (kept === '{}') sessionStorage.removeItem(KEY);
    else sessionStorage.setItem(KEY, kept);
  } catch {
    // No room, or no storage at all: the batch lives as long as the page.
  }
});

/** What a reload leaves of them. */
export function keptBatches(): BatchStore {
  try {
    const kept: BatchStore = JSON.parse(sessionStorage.getItem(KEY) ?? '{}');
    const sent = Object.entries(kept).flatMap(([tool, batch]) => {
      const items = batch?.items.filter(({ jobId, image }) => jobId || image) ?? [];
      return batch && items.length > 0 ? [[tool, { ...batch, items: items.map(afterReload) }]] : [];
    });
    return Object.fromEntries(sent);
  } catch {
    return {};
  }
}

function afterReload(item: BatchItem): BatchItem {
  // Its job tells what has become of it meanwhile, with addresses that still work.
  if (item.jobId) return { ...item, state: { kind: 'queued', position: null, etaSeconds: null } };
  // Nothing is paid for behind somebody's back; if its run exists after all, the key of a repeat finds it.
  return isOver(item)
    ? item
    : { ...item, state: { kind: 'failed', reason: 'Not started before the reload' } };
}
