import { Zip, ZipPassThrough } from 'fflate';
import { api, fetchFile, isProblem, unwrap } from '@/lib/api-client';
import { saveFile } from '@/lib/download';

export type Wanted = { jobId: string; name: string };

/** More than that in one file needs a format that not every program reads. */
const MOST_BYTES = 0xffff_ffff;

export class TooMuchForOneZip extends Error {
  override name = 'TooMuchForOneZip';
}

/** Saves the results of runs as one file; says how many were not there any more. */
export async function downloadZip(
  wanted: Wanted[],
  fileName: string,
  onFetched: (count: number) => void,
): Promise<number> {
  const parts: Blob[] = [];
  const zip = new Zip((error, bytes) => {
    if (error) throw error;
    // A blob each: the browser may keep them on disk.
    parts.push(new Blob([bytes as BlobPart]));
  });
  let missing = 0;
  let total = 0;
  for (const [index, { jobId, name }] of wanted.entries()) {
    // Asked for anew: the address of a picture is good for some time only.
    const path = { jobId };
    const job = await orNull(async () => unwrap(await api.GET('/api/jobs/{jobId}', { params: { path } })));
    const result = job?.results[0];
    total += result?.sizeBytes ?? 0;
    if (total > MOST_BYTES) throw new TooMuchForOneZip();
    const file = result ? await orNull(() => fetchFile(result.url)) : null;
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
  if (missing < wanted.length) saveFile(new Blob(parts, { type: 'application/zip' }), fileName);
  return missing;
}

/** Null when it is not there any more: deleted alone, or with its image. */
async function orNull<T>(find: () => Promise<T>): Promise<T | null> {
  try {
    return await find();
  } catch (error) {
    if (isProblem(error, 404)) return null;
    throw error;
  }
}
