import type { QueryClient } from '@tanstack/react-query';
import { create } from 'zustand';
import { isVerdict } from '@/lib/api-client';
import type { Image } from '@/lib/api-types';
import { newId } from '@/lib/new-id';
import { notifyError } from '@/lib/notify';
import { queryKeys } from '@/lib/query-keys';
import { sendImage } from '@/lib/send-image';
import { onSignOut } from '@/lib/sign-out-cleanup';
import { t } from '@/lib/translate';
import type { PauseCause, withRetries } from '@/lib/with-retries';
import { imageTexts } from './texts';

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

const sending = new Map<string, AbortController>();

/** Starts an upload on the page that shows it, and returns its id. */
export function startUpload(queryClient: QueryClient, file: File, prefix: string): string {
  const [id] = addUploads([file], prefix, { kind: 'sending', fraction: 0 }, true);
  if (id) void send(queryClient, id);
  return id ?? '';
}

/** Adds uploads to the list, and returns their ids. */
export function addUploads(files: File[], prefix: string, state: UploadState, isAttended: boolean): string[] {
  const added = files.map((file) => ({ id: newId(), file, prefix, state, isAttended }));
  useUploads.setState(({ uploads }) => ({ uploads: [...uploads, ...added] }));
  return added.map(({ id }) => id);
}

const once: typeof withRetries = (_signal, _onPause, call) => call();

/** Sends the file of an upload, once or with retries. Never rejects: the upload has the failure. */
export async function send(queryClient: QueryClient, id: string, repeat = once) {
  const upload = findUpload(id);
  if (!upload) return;
  const stop = new AbortController();
  sending.set(id, stop);
  const onProgress = (fraction: number) => setUploadState(id, { kind: 'sending', fraction });
  const onPause = (cause: PauseCause) => setUploadState(id, { kind: 'paused', cause });
  try {
    const image = await repeat(stop.signal, onPause, () => {
      onProgress(0);
      return sendImage(upload.file, { onProgress, signal: stop.signal });
    });
    setUploadState(id, { kind: 'done', image });
    // Not awaited: the new image's page does not need the list. Many uploads do not ask for it all at once.
    const cancelRefetch = !useUploads.getState().uploads.some(isUnfinished);
    void queryClient.invalidateQueries({ queryKey: queryKeys.userImages }, { cancelRefetch });
  } catch (error) {
    if (stop.signal.aborted) return;
    setUploadState(id, { kind: 'failed', error: error as Error, canRetry: !isVerdict(error) });
    notifyError(t(imageTexts.uploadFailed));
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
