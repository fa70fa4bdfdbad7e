import type { ToolName } from '@/lib/api-types';

/** The server keeps a visitor's picture and result for an hour. */
const KEPT_MS = 3_600_000;
// The tab's storage: the next person at a shared computer must not see the picture.
const keyOf = (tool: ToolName) => `retouch-free-run-${tool}`;

/** Returns the visitor's last run of a tool in this tab, while the server keeps it. */
export function keptRun(tool: ToolName): string | null {
  try {
    const kept: { jobId: string; at: number } | null = JSON.parse(
      sessionStorage.getItem(keyOf(tool)) ?? 'null',
    );
    return kept && Date.now() - kept.at < KEPT_MS ? kept.jobId : null;
  } catch {
    return null;
  }
}

export function keepRun(tool: ToolName, jobId: string) {
  try {
    sessionStorage.setItem(keyOf(tool), JSON.stringify({ jobId, at: Date.now() }));
  } catch {
    // Storage is full or blocked: the result lasts as long as the page.
  }
}

export function forgetRun(tool: ToolName) {
  try {
    sessionStorage.removeItem(keyOf(tool));
  } catch {
    // Storage is blocked, so it holds nothing.
  }
}
