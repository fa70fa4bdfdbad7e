import type { QueryClient } from '@tanstack/react-query';
import { create } from 'zustand';
import { sendFile } from '@/lib/api-client';
import type { Image } from '@/lib/api-types';
import { newId } from '@/lib/new-id';
import { notifyError } from '@/lib/notify';
import { queryKeys } from '@/lib/query-keys';
import { onSignOut } from '@/lib/sign-out-cleanup';
import { imageTexts } from './texts';

/** One file on its way to the server. */
export type Upload = {
  id: string;
  name: string;
  /** The start of the path of the page that the image was uploaded for. */
  prefix: string;
  fraction: number;
  image: Image | null;
  error: Error | null;
  /** Whether the page that started it is still open: it shows the upload itself, and the image after it. */
  isAttended: boolean;
};

/** Outside the component tree, so that an upload goes on while another page is open. */
export const useUploads = create<{ uploads: Upload[] }>(() => ({ uploads: [] }));

const sending = new Map<string, AbortController>();

/** Starts an upload on the page that shows it, and returns its id. */
export function startUpload(queryClient: QueryClient, file: File, prefix: string): string {
  const id = newId();
  const upload = { id, name: file.name, prefix, fraction: 0, image: null, error: null, isAttended: true };
  useUploads.setState(({ uploads }) => ({ uploads: [...uploads, upload] }));
  void send(queryClient, file, id);
  return id;
}

async function send(queryClient: QueryClient, file: File, id: string) {
  const stop = new AbortController();
  sending.set(id, stop);
  try {
    const { body } = await sendFile('/api/images/upload', file, {
      onProgress: (fraction) => update(id, { fraction }),
      signal: stop.signal,
    });
    const image: Image = JSON.parse(await body.text());
    // Not awaited: the new image's page does not need the list.
    void queryClient.invalidateQueries({ queryKey: queryKeys.userImages });
    update(id, { image });
  } catch (error) {
    if (stop.signal.aborted) return;
    update(id, { error: error as Error });
    notifyError(imageTexts.uploadFailed);
  } finally {
    sending.delete(id);
  }
}

/** Records that the page that started it is open, and returns a function for when it is left. */
export function attendUpload(id: string): () => void {
  update(id, { isAttended: true });
  return () => update(id, { isAttended: false });
}

/** Stops an upload, or forgets a finished one. */
export function removeUpload(id: string) {
  sending.get(id)?.abort();
  useUploads.setState(({ uploads }) => ({ uploads: uploads.filter((upload) => upload.id !== id) }));
}

export function isSending({ image, error }: Upload): boolean {
  return !image && !error;
}

function update(id: string, change: Partial<Upload>) {
  useUploads.setState(({ uploads }) => ({
    uploads: uploads.map((upload) => (upload.id === id ? { ...upload, ...change } : upload)),
  }));
}

onSignOut(() => {
  for (const { id } of useUploads.getState().uploads) removeUpload(id);
});
