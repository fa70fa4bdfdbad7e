// Lighthouse on the pages below, or on those that are named. Fails where a category is below its bar.
import { mkdirSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import lighthouse, { desktopConfig } from 'lighthouse';
import { openBrowser, openTool, origin } from './browser.mjs';

const BAR = 95;
const RUNS = Number(process.env.RUNS ?? 3);
const categories = ['performance', 'accessibility', 'best-practices', 'seo'];
const metrics = ['first-contentful-paint', 'largest-contentful-paint', 'total-blocking-time', 'speed-index'];
const isDesktop = process.argv.includes('--desktop');
const wanted = process.argv.slice(2).filter((argument) => !argument.startsWith('--'));
const reports = fileURLToPath(new URL('../../.retouch/page-speed/', import.meta.url));

const pages = [
  { name: 'landing', address: async () => `${origin}/dashboard` },
  { name: 'pricing', address: async () => `${origin}/pricing` },
  { name: 'free tool', address: async () => `${origin}/remove-background` },
  { name: 'tool, signed in', address: openTool },
];

mkdirSync(reports, { recursive: true });
let isGood = true;
for (const { name, address } of pages) {
  if (wanted.length > 0 && !wanted.includes(name)) continue;
  const results = [];
  for (let run = 0; run < RUNS; run += 1) results.push(await measure(address));
  const [middle] = results
    .toSorted((a, b) => scoreOf(a, 'performance') - scoreOf(b, 'performance'))
    .slice((RUNS - 1) >> 1);
  writeFileSync(
    `${reports}${name.replaceAll(/\W+/g, '-')}${isDesktop ? '-desktop' : ''}.json`,
    middle.report,
  );
  const scores = categories.map((category) => `${category} ${scoreOf(middle, category)}`);
  const times = metrics.map((metric) => middle.lhr.audits[metric].displayValue.replace(/\s/, ' '));
  print(
    `${name}: ${scores.join(', ')} (${metrics.map((metric, at) => `${metric} ${times[at]}`).join(', ')})`,
  );
  for (const category of categories) {
    if (scoreOf(middle, category) >= BAR) continue;
    isGood = false;
    print(`  ${category} is below ${BAR}:`);
    for (const audit of failing(middle, category)) print(`    ${audit}`);
  }
}
process.exitCode = isGood ? 0 : 1;

/** A browser of its own each time, so that nothing is cached from the page before. */
async function measure(address) {
  const browser = await openBrowser();
  try {
    const page = await browser.newPage();
    const url = await address(page);
    // The session lies in the tab's storage, which Lighthouse would clear.
    const flags = { output: 'json', logLevel: 'error', disableStorageReset: true };
    const result = await lighthouse(url, flags, isDesktop ? desktopConfig : undefined, page);
    if (result.lhr.runtimeError) throw new Error(result.lhr.runtimeError.message);
    // A tool that sends its visitor to /login would be measured as that page.
    if (result.lhr.finalDisplayedUrl !== url)
      throw new Error(`${url} led to ${result.lhr.finalDisplayedUrl}`);
    return result;
  } finally {
    await browser.close();
  }
}

function scoreOf({ lhr }, category) {
  return Math.round(lhr.categories[category].score * 100);
}

function failing({ lhr }, category) {
  return lhr.categories[category].auditRefs
    .filter(({ id, weight }) => weight > 0 && (lhr.audits[id].score ?? 1) < 0.9)
    .map(({ id }) => `${id}: ${lhr.audits[id].title} ${lhr.audits[id].displayValue ?? ''}`);
}

function print(line) {
  process.stdout.write(`${line}\n`);
}
