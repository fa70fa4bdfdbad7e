import { Zip, ZipPassThrough } from 'fflate';
import { api, fetchFile, unwrap } from '@/lib/api-client';
import { saveFile } from '@/lib/download';

export type Wanted = { jobId: string; name: string };

/** More than that in one file needs a format that not every program reads. */
const MOST_BYTES = 0xffff_ffff;

export class TooMuchForOneZip extends Error {}

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
    const job = unwrap(await api.GET('/api/jobs/{jobId}', { params: { path: { jobId } } }));
    const [result] = job.results;
    if (result) {
      total += result.sizeBytes;
      if (total > MOST_BYTES) throw new TooMuchForOneZip();
      const entry = new ZipPassThrough(name);
      entry.mtime = result.createdAt;
      zip.add(entry);
      entry.push(new Uint8Array(await (await fetchFile(result.url)).arrayBuffer()), true);
    } else {
      missing += 1;
    }
    onFetched(index + 1);
  }
  zip.end();
  if (missing < wanted.length) saveFile(new Blob(parts, { type: 'application/zip' }), fileName);
  return missing;
}
