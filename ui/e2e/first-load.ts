import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import type { Page, Response } from '@playwright/test';
import { openSettled } from './settled';

/** Gzip bytes of each script that the first visit to a page loads, by the script's name without its hash. */
type FirstLoad = Record<string, number>;

const BASELINE = fileURLToPath(new URL('../perf/first-load.json', import.meta.url));
const HASH_AND_EXTENSION = /-[\w-]{8}\.js$|\.js$/;
/** Konva's check for a second copy contains its name, which survives minification. */
const DRAWING_LIBRARY = 'Konva';

export async function firstLoad(page: Page, path: string): Promise<{ scripts: FirstLoad; canDraw: boolean }> {
  const addresses = new Set<string>();
  const note = (response: Response) => {
    const { pathname } = new URL(response.url());
    if (pathname.endsWith('.js')) addresses.add(pathname);
  };
  page.on('response', note);
  await openSettled(page, path);
  page.off('response', note);

  const scripts: FirstLoad = {};
  let canDraw = false;
  for (const address of addresses) {
    const body = await (await page.request.get(address)).body();
    const name = (address.split('/').at(-1) ?? address).replace(HASH_AND_EXTENSION, '');
    scripts[name] = (scripts[name] ?? 0) + gzipSync(body).length;
    canDraw ||= body.includes(DRAWING_LIBRARY);
  }
  return { scripts, canDraw };
}

export function total(scripts: FirstLoad): number {
  return Object.values(scripts).reduce((sum, bytes) => sum + bytes, 0);
}

/** Lists the scripts that have grown since the baseline, largest growth first. */
export function growth(page: string, scripts: FirstLoad): string {
  const before = baseline()[page] ?? {};
  const lines = Object.entries(scripts)
    .map(([name, now]) => ({ name, now, was: before[name] ?? 0 }))
    .filter(({ now, was }) => now > was)
    .sort((a, b) => b.now - b.was - (a.now - a.was))
    .map(({ name, now, was }) => `  ${name}: ${was} -> ${now} (+${now - was})`);
  return [`${page}: ${total(scripts)} bytes, ${total(before)} in the baseline. Growth:`, ...lines].join('\n');
}

function baseline(): Record<string, FirstLoad> {
  return JSON.parse(readFileSync(BASELINE, 'utf8'));
}

/** Saves these sizes as the baseline. */
export function saveBaseline(page: string, scripts: FirstLoad) {
  const all = { ...baseline(), [page]: sorted(scripts) };
  writeFileSync(BASELINE, `${JSON.stringify(sorted(all), null, 2)}\n`);
}

function sorted<T>(values: Record<string, T>): Record<string, T> {
  return Object.fromEntries(Object.entries(values).sort(([a], [b]) => a.localeCompare(b)));
}
