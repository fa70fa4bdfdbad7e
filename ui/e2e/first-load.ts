import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import type { Page, Response } from '@playwright/test';

/** Gzip bytes of each script that a first visit of a page fetches, by the script's name without its hash. */
export type FirstLoad = Record<string, number>;

const KEPT = fileURLToPath(new URL('../perf/first-load.json', import.meta.url));
const HASH_AND_ENDING = /-[\w-]{8}\.js$|\.js$/;
/** Konva names itself where it looks for a second copy of itself, and no minifier takes that away. */
const DRAWING_LIBRARY = 'Konva';

export async function firstLoad(page: Page, path: string): Promise<{ scripts: FirstLoad; canDraw: boolean }> {
  const addresses = new Set<string>();
  const note = (response: Response) => {
    const { pathname } = new URL(response.url());
    if (pathname.endsWith('.js')) addresses.add(pathname);
  };
  page.on('response', note);
  await page.goto(path, { waitUntil: 'networkidle' });
  page.off('response', note);

  const scripts: FirstLoad = {};
  let canDraw = false;
  for (const address of addresses) {
    const body = await (await page.request.get(address)).body();
    const name = (address.split('/').at(-1) ?? address).replace(HASH_AND_ENDING, '');
    scripts[name] = (scripts[name] ?? 0) + gzipSync(body).length;
    canDraw ||= body.includes(DRAWING_LIBRARY);
  }
  return { scripts, canDraw };
}

export function total(scripts: FirstLoad): number {
  return Object.values(scripts).reduce((sum, bytes) => sum + bytes, 0);
}

/** What is larger than when the sizes were last kept, the worst first: for whoever has to make room. */
export function growth(page: string, scripts: FirstLoad): string {
  const before = kept()[page] ?? {};
  const lines = Object.entries(scripts)
    .map(([name, now]) => ({ name, now, was: before[name] ?? 0 }))
    .filter(({ now, was }) => now > was)
    .sort((a, b) => b.now - b.was - (a.now - a.was))
    .map(({ name, now, was }) => `  ${name}: ${was} -> ${now} (+${now - was})`);
  return [`${page}: ${total(scripts)} bytes, kept as ${total(before)}. What grew:`, ...lines].join('\n');
}

function kept(): Record<string, FirstLoad> {
  return JSON.parse(readFileSync(KEPT, 'utf8'));
}

/** Keeps these sizes as the ones to compare with. */
export function keep(page: string, scripts: FirstLoad) {
  const all = { ...kept(), [page]: sorted(scripts) };
  writeFileSync(KEPT, `${JSON.stringify(sorted(all), null, 2)}\n`);
}

function sorted<T>(values: Record<string, T>): Record<string, T> {
  return Object.fromEntries(Object.entries(values).sort(([a], [b]) => a.localeCompare(b)));
}
