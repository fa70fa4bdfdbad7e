import type { QueryClient } from '@tanstack/react-query';
import { ApiError, isProblem } from '@/lib/api-client';
import { UserError } from '@/lib/failure-text';
import { checkImageFile, type FileLimits } from '@/lib/use-chosen-image';
import { withRetries } from '@/lib/with-retries';
import { send } from './send-upload';
import { addUploads, findUpload, setUploadState, type Upload, useUploads } from './uploads';

/** A browser opens few connections to one server, and the rest of the page needs some. */
const MAX_SENDERS = 2;

/** The limits of the files that wait. */
const limits = new Map<string, FileLimits>();
let senders = 0;

/** Uploads files one after another, while any page is open. Each is checked first. */
export function queueUploads(queryClient: QueryClient, files: File[], prefix: string, limit: FileLimits) {
  for (const id of addUploads(files, prefix, { kind: 'waiting' }, false)) limits.set(id, limit);
  work(queryClient);
}

/** Sends a failed upload again. */
export function retryUpload(queryClient: QueryClient, id: string) {
  setUploadState(id, { kind: 'waiting' });
  work(queryClient);
}

function work(queryClient: QueryClient) {
  while (senders < MAX_SENDERS && nextUpload()) {
    senders += 1;
    void sendWaiting(queryClient).finally(() => {
      senders -= 1;
    });
  }
}

const nextUpload = () => useUploads.getState().uploads.find(({ state }) => state.kind === 'waiting');

async function sendWaiting(queryClient: QueryClient) {
  for (;;) {
    const next = nextUpload();
    if (!next) return;
    const { id, file } = next;
    setUploadState(id, { kind: 'sending', fraction: 0 });
    const problem = await findProblem(file, limits.get(id));
    limits.delete(id);
    // The user may have canceled it in the meantime.
    if (!findUpload(id)) continue;
    if (problem) setUploadState(id, { kind: 'failed', error: new UserError(problem), canRetry: false });
    else await send(queryClient, id, withRetries);
    failWaiting(findUpload(id)?.state);
  }
}

/** If the user has been signed out or the storage is full, the other files fail as well. */
function failWaiting(state?: Upload['state']) {
  if (state?.kind !== 'failed') return;
  const isFull = state.error instanceof ApiError && state.error.code === 'storage_full';
  if (!isFull && !isProblem(state.error, 401)) return;
  for (const other of useUploads.getState().uploads) {
    if (other.state.kind === 'waiting') setUploadState(other.id, state);
  }
}

/** Explains why a file cannot be used; null if it can, or has been checked before. */
async function findProblem(file: File, limit?: FileLimits): Promise<string | null> {
  if (!limit) return null;
  const url = URL.createObjectURL(file);
  const { problem } = await checkImageFile(file, url, limit);
  URL.revokeObjectURL(url);
  return problem;
}
