import { api, unwrap } from '@/lib/api-client';
import type { ToolName } from '@/lib/api-types';
import { earliestExpiry } from '@/lib/picture-urls';
import { serverNow } from '@/lib/server-clock';
import { type BatchItem, updateItem } from './batch-store';

/** Reads the job of a finished item again if the URLs of its result have expired: no query has them. */
export async function renewResult(tool: ToolName, { id, jobId, state }: BatchItem) {
  if (!jobId || state.kind !== 'done') return;
  const expiresAt = earliestExpiry(state.result);
  if (expiresAt === null || expiresAt > serverNow()) return;
  try {
    const { results } = unwrap(await api.GET('/api/jobs/{jobId}', { params: { path: { jobId } } }));
    if (results[0]) updateItem(tool, id, { state: { kind: 'done', result: results[0] } });
  } catch {
    // The page loads the picture again a little later; if that fails, this is asked again.
  }
}
