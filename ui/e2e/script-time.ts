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

// More detailed categories would double the measured time.
const CATEGORIES = ['devtools.timeline'];
/** Trace events of running scripts and of the work they cause. */
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

/** Events that are running when a trace starts or stops have no CPU time. */
const MEASURED_SHARE = 0.98;

type MeasuredEvent = TraceEvent & { tts: number; tdur: number };

function hasCpuTime(event: TraceEvent): event is MeasuredEvent {
  return event.tts !== undefined && event.tdur !== undefined;
}

/**
 * Milliseconds of script per event of a type while `act` runs: its listeners, and the renders, timers and frames until
 * the next event. Measures CPU time of the page's main thread, so that the load of the machine does not matter.
 */
export async function scriptPerEvent(page: Page, type: string, act: () => Promise<void>): Promise<number[]> {
  const browser = page.context().browser();
  if (!browser) throw new Error('This context has no browser');
  await browser.startTracing(page, { categories: CATEGORIES });
  await act();
  const trace = JSON.parse((await browser.stopTracing()).toString()) as { traceEvents: TraceEvent[] };

  const isCounted = ({ name, args }: TraceEvent) => name === 'EventDispatch' && args.data?.type === type;
  const first = trace.traceEvents.find(isCounted);
  if (!first) throw new Error(`No ${type} was dispatched`);
  const events = trace.traceEvents
    .filter(
      ({ ph, pid, tid, name }) => ph === 'X' && pid === first.pid && tid === first.tid && SCRIPT.has(name),
    )
    .sort((a, b) => a.ts - b.ts);

  const measured = events.filter(hasCpuTime);
  if (measured.length < MEASURED_SHARE * events.length) {
    throw new Error(`Only ${measured.length} of ${events.length} events have a CPU time`);
  }

  const spent: number[] = [];
  let covered = Number.NEGATIVE_INFINITY;
  for (const event of measured) {
    if (isCounted(event)) spent.push(0);
    // Nested events count once.
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
