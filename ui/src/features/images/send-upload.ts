import type { QueryClient } from '@tanstack/react-query';
import { isVerdict } from '@/lib/api-client';
import { notifyError } from '@/lib/notify';
import { queryKeys } from '@/lib/query-keys';
import { sendImage } from '@/lib/send-image';
import { t } from '@/lib/translate';
import type { PauseCause, withRetries } from '@/lib/with-retries';
import { imageTexts } from './texts';
import { addUploads, findUpload, isUnfinished, sending, setUploadState, useUploads } from './uploads';

/** Starts an upload on the page that shows it, and returns its id. */
export function startUpload(queryClient: QueryClient, file: File, prefix: string): string {
  const [id] = addUploads([file], prefix, { kind: 'sending', fraction: 0 }, true);
  if (id) void send(queryClient, id);
  return id ?? '';
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
