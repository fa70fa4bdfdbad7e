import type { EditingTool } from '@/features/catalog/tool';
import { newId } from '@/lib/new-id';
import { checkImageFile, type FileLimits } from '@/lib/use-chosen-image';
import { type BatchItem, updateBatch, updateItem, useBatches } from './batch-store';
import './keep-batches';
import { newRunKey } from './run-key';

/** Adds files to the tool's batch, creating it if necessary, and checks each before anything is sent. */
export async function addFiles(tool: EditingTool, files: File[], owner: string | null, limits: FileLimits) {
  const added = files.map(createItem);
  if (useBatches.getState()[tool.name]?.owner !== owner) {
    useBatches.setState({ [tool.name]: { owner, action: null, hasStarted: false, items: [] } });
  }
  updateBatch(tool.name, ({ items }) => ({ items: [...items, ...added] }));
  // One at a time: measuring a large picture takes a lot of memory.
  for (const { id, file, previewUrl } of added) {
    if (!file || !previewUrl) continue;
    const { size, problem } = await checkImageFile(file, previewUrl, limits);
    updateItem(tool.name, id, {
      size,
      // This browser cannot show the file, and the server may.
      ...(!size && !problem && { previewUrl: null }),
      state: problem ? { kind: 'rejected', reason: problem } : { kind: 'ready' },
    });
  }
}

function createItem(file: File): BatchItem {
  return {
    id: newId(),
    name: file.name,
    bytes: file.size,
    file,
    previewUrl: URL.createObjectURL(file),
    size: null,
    key: newRunKey(),
    image: null,
    jobId: null,
    state: { kind: 'checking' },
  };
}
