import { create } from 'zustand';
import type { Image } from '@/lib/api-types';
import { newId } from '@/lib/new-id';
import { onSignOut } from '@/lib/sign-out-cleanup';
import type { PauseCause } from '@/lib/with-retries';

/** One file on its way to the server. */
export type Upload = {
  id: string;
  file: File;
  /** The start of the path of the page that the image was uploaded for. */
  prefix: string;
  state: UploadState;
  /** Whether the page that started it is still open: it shows the upload itself, and the image after it. */
  isAttended: boolean;
};

type UploadState =
  /** Behind others of the queue. */
  | { kind: 'waiting' }
  /** Waits for the server or the network and then continues automatically. */
  | { kind: 'paused'; cause: PauseCause }
  | { kind: 'sending'; fraction: number }
  | { kind: 'done'; image: Image }
  /** A file that cannot be used is not worth another attempt. */
  | { kind: 'failed'; error: Error; canRetry: boolean };

/** Outside the component tree, so that an upload continues while another page is open. */
export const useUploads = create<{ uploads: Upload[] }>(() => ({ uploads: [] }));

/** What stops each upload that is being sent. */
export const sending = new Map<string, AbortController>();

/** Adds uploads to the list, and returns their ids. */
export function addUploads(files: File[], prefix: string, state: UploadState, isAttended: boolean): string[] {
  const added = files.map((file) => ({ id: newId(), file, prefix, state, isAttended }));
  useUploads.setState(({ uploads }) => ({ uploads: [...uploads, ...added] }));
  return added.map(({ id }) => id);
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

export function isUnfinished({ state }: Upload): boolean {
  return state.kind !== 'done' && state.kind !== 'failed';
}

export function findUpload(id: string): Upload | undefined {
  return useUploads.getState().uploads.find((upload) => upload.id === id);
}

export function setUploadState(id: string, state: UploadState) {
  update(id, { state });
}

function update(id: string, change: Partial<Upload>) {
  useUploads.setState(({ uploads }) => ({
    uploads: uploads.map((upload) => (upload.id === id ? { ...upload, ...change } : upload)),
  }));
}

onSignOut(() => {
  for (const { id } of useUploads.getState().uploads) removeUpload(id);
});
