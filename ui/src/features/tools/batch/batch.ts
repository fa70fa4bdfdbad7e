import { create } from 'zustand';
import type { Count, Image, Result, ToolName } from '@/lib/api-types';
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
  /** The server has enough for the moment. */
  | { kind: 'held'; until: number }
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

/** Whether nothing more will become of it unless somebody asks. */
export function isOver({ state: { kind } }: BatchItem): boolean {
  return ['refused', 'done', 'failed', 'cancelled', 'unpaid'].includes(kind);
}

// What the server knows of outlives a reload of this tab; files that were never sent do not.
useBatches.subscribe((batches) => {
  try {
    sessionStorage.setItem(
      KEY,
      JSON.stringify(batches, (name, value) => (name === 'file' || name === 'address' ? null : value)),
    );
  } catch {
    // No room, or no storage at all: the batch lives as long as the page.
  }
});

/** What a reload leaves of them. */
export function keptBatches(): BatchStore {
  try {
    const kept: BatchStore = JSON.parse(sessionStorage.getItem(KEY) ?? '{}');
    const sent = Object.entries(kept).flatMap(([tool, batch]) => {
      const items = batch?.items.filter(({ jobId }) => jobId) ?? [];
      return batch && items.length > 0 ? [[tool, { ...batch, items: items.map(askedAnew) }]] : [];
    });
    return Object.fromEntries(sent);
  } catch {
    return {};
  }
}

/** Its job tells what has become of it meanwhile, with addresses that still work. */
function askedAnew(item: BatchItem): BatchItem {
  return { ...item, state: { kind: 'queued', position: null, etaSeconds: null } };
}
