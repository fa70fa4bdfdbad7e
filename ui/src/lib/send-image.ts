import { sendFile } from './api-client';
import type { Image } from './api-types';
import { newId } from './new-id';

/** The idempotency keys of chosen files. */
const keys = new WeakMap<File, string>();

/** Makes the next upload of a file store it again, because its image is gone. */
export function forgetUpload(file: File) {
  keys.delete(file);
}

/** Uploads an image. A file that is sent again, because its answer was lost, has the same key and is not stored twice. */
export async function sendImage(
  file: File,
  options: { signal: AbortSignal; onProgress: (fraction: number) => void },
): Promise<Image> {
  const key = keys.get(file) ?? newId();
  keys.set(file, key);
  const { body } = await sendFile('/api/images/upload', file, {
    ...options,
    headers: { 'Idempotency-Key': key },
  });
  return JSON.parse(await body.text());
}
