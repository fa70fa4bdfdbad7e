import { Zip, ZipPassThrough } from 'fflate';
import { api, fetchFile, isProblem, unwrap } from '@/lib/api-client';
import { saveFile } from '@/lib/download';
import { withRetries } from '@/lib/with-retries';

/** A result to download: the job that produced it, and its name in the ZIP file. */
type ZipEntry = { jobId: string; name: string };

/** Larger files need the Zip64 format, which not every program reads. */
const MAX_BYTES = 0xffff_ffff;

class ZipTooLarge extends Error {
  override name = 'ZipTooLarge';
}

/**
 * Saves the results as one ZIP file. Returns how many were missing because they had been deleted. Hundreds of files take
 * minutes, so a lost connection or a busy server does not end it.
 */
export async function downloadZip(
  entries: ZipEntry[],
  fileName: string,
  onFetched: (count: number) => void,
  signal: AbortSignal,
): Promise<number> {
  const parts: Blob[] = [];
  const zip = new Zip((error, bytes) => {
    if (error) throw error;
    // The browser may move blobs to disk.
    parts.push(new Blob([bytes as BlobPart]));
  });
  let missing = 0;
  let total = 0;
  for (const [index, { jobId, name }] of entries.entries()) {
    // Reads the job again: the URL of its result may have expired.
    const path = { jobId };
    const job = await nullIfDeleted(signal, async () =>
      unwrap(await api.GET('/api/jobs/{jobId}', { params: { path }, signal })),
    );
    const result = job?.results[0];
    total += result?.sizeBytes ?? 0;
    if (total > MAX_BYTES) throw new ZipTooLarge();
    const file = result ? await nullIfDeleted(signal, () => fetchFile(result.url, signal)) : null;
    if (result && file) {
      const entry = new ZipPassThrough(name);
      entry.mtime = result.createdAt;
      zip.add(entry);
      entry.push(new Uint8Array(await file.arrayBuffer()), true);
    } else {
      missing += 1;
    }
    onFetched(index + 1);
  }
  zip.end();
  if (missing < entries.length) saveFile(new Blob(parts, { type: 'application/zip' }), fileName);
  return missing;
}

/** Resolves to null on 404: deleted, alone or with its image. */
async function nullIfDeleted<T>(signal: AbortSignal, read: () => Promise<T>): Promise<T | null> {
  try {
    return await withRetries(signal, () => {}, read);
  } catch (error) {
    if (isProblem(error, 404)) return null;
    throw error;
  }
}
