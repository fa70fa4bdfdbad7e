import { api, unwrap } from '@/lib/api-client';
import type { ArchiveContent } from '@/lib/api-types';
import { saveFile } from '@/lib/download';

export type ArchiveRequest = { imageIds: string[]; include: ArchiveContent };

/** Saves images, their results, or both as one ZIP file. The API sends it as it makes it, so its size is not known. */
export async function downloadImages(
  body: ArchiveRequest,
  onReceived: (bytes: number) => void,
  signal: AbortSignal,
): Promise<void> {
  const stream = unwrap(await api.POST('/api/images/archive', { body, signal, parseAs: 'stream' }));
  const parts: Blob[] = [];
  let received = 0;
  const reader = (stream as ReadableStream<Uint8Array<ArrayBuffer>>).getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    // The browser may move blobs to disk.
    parts.push(new Blob([value]));
    received += value.length;
    onReceived(received);
  }
  saveFile(new Blob(parts, { type: 'application/zip' }), 'retouch-images.zip');
}
