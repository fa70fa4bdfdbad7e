import type { Page } from '@playwright/test';

type TraceEvent = {
  name: string;
  ph: string;
  ts: number;
  tts?: number;
  tdur?: number;
  pid: number;
  tid: number;
  args: { data?: { type?: string } };
};

// Those that say more cost more: they would double what is measured.
const CATEGORIES = ['devtools.timeline'];
/** What the browser does because a script is there: running it, and what it holds up meanwhile. */
const SCRIPT = new Set([
  'EventDispatch',
  'FunctionCall',
  'EvaluateScript',
  'FireAnimationFrame',
  'FireIdleCallback',
  'TimerFire',
  'RunMicrotasks',
  'HandlePostMessage',
  'MinorGC',
  'MajorGC',
]);

/**
 * Milliseconds of script for each event of a type while `act` runs: its listeners, and the renders, timers and
 * frames up to the next one. Processor time of the page's main thread, so that what else runs on the machine counts
 * for nothing.
 */
export async function scriptPerEvent(page: Page, type: string, act: () => Promise<void>): Promise<number[]> {
  const browser = page.context().browser();
  if (!browser) throw new Error('This context has no browser of its own');
  await browser.startTracing(page, { categories: CATEGORIES });
  await act();
  const trace = JSON.parse((await browser.stopTracing()).toString()) as { traceEvents: TraceEvent[] };

  const isAwaited = ({ name, args }: TraceEvent) => name === 'EventDispatch' && args.data?.type === type;
  const first = trace.traceEvents.find(isAwaited);
  if (!first) throw new Error(`No ${type} was dispatched`);
  const events = trace.traceEvents
    .filter(
      ({ ph, pid, tid, name }) => ph === 'X' && pid === first.pid && tid === first.tid && SCRIPT.has(name),
    )
    .sort((a, b) => a.ts - b.ts);

  const spent: number[] = [];
  let covered = Number.NEGATIVE_INFINITY;
  for (const event of events) {
    if (event.tts === undefined || event.tdur === undefined) {
      throw new Error('This browser measures no processor time');
    }
    if (isAwaited(event)) spent.push(0);
    // What lies within another counts once.
    if (event.tts < covered) continue;
    covered = event.tts + event.tdur;
    const last = spent.length - 1;
    if (last >= 0) spent[last] = (spent[last] ?? 0) + event.tdur / 1000;
  }
  return spent;
}

export function percentile(values: number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.ceil(share * sorted.length) - 1] ?? Number.NaN;
}
