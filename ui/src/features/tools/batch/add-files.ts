import { newId } from '@/lib/new-id';
import { examine } from '@/lib/use-chosen-image';
import type { EditingTool } from '../tool';
import { type BatchItem, updateBatch, updateItem, useBatches } from './batch';

type Limits = { maxDimension: number; maxBytes: number };

/** Puts files into the tool's batch, a new one if need be, and looks at each before anything is sent. */
export async function addFiles(tool: EditingTool, files: File[], owner: string | null, limits: Limits) {
  const added = files.map(itemOf);
  const [action] = tool.paid;
  if (action && useBatches.getState()[tool.name]?.owner !== owner) {
    useBatches.setState({ [tool.name]: { owner, action, hasStarted: false, items: [] } });
  }
  updateBatch(tool.name, ({ items }) => ({ items: [...items, ...added] }));
  // One after the other: a large picture takes much memory while it is measured.
  for (const { id, file, address } of added) {
    if (!file || !address) continue;
    const { size, problem } = await examine(file, address, limits.maxDimension, limits.maxBytes);
    updateItem(tool.name, id, {
      size,
      state: problem ? { kind: 'refused', reason: problem } : { kind: 'ready' },
    });
  }
}

function itemOf(file: File): BatchItem {
  return {
    id: newId(),
    name: file.name,
    bytes: file.size,
    file,
    address: URL.createObjectURL(file),
    size: null,
    key: newId(),
    image: null,
    jobId: null,
    state: { kind: 'checking' },
  };
}
