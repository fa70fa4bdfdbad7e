// Runs Lighthouse on the pages below, or on those named in the arguments. Fails if a category is below the minimum.
import { mkdirSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import lighthouse, { desktopConfig } from 'lighthouse';
import { openBrowser, openTool, origin } from './browser.mjs';

const MIN_SCORE = 95;
const RUNS = Number(process.env.RUNS ?? 3);
const categories = ['performance', 'accessibility', 'best-practices', 'seo'];
const metrics = ['first-contentful-paint', 'largest-contentful-paint', 'total-blocking-time', 'speed-index'];
const isDesktop = process.argv.includes('--desktop');
const names = process.argv.slice(2).filter((argument) => !argument.startsWith('--'));
const reports = fileURLToPath(new URL('../../.retouch/page-speed/', import.meta.url));

const pages = [
  { name: 'landing', open: async () => `${origin}/dashboard` },
  { name: 'pricing', open: async () => `${origin}/pricing` },
  { name: 'free tool', open: async () => `${origin}/remove-background` },
  { name: 'verify', open: async () => `${origin}/verify` },
  { name: 'tool, signed in', open: openTool },
];

mkdirSync(reports, { recursive: true });
let isPassing = true;
for (const { name, open } of pages) {
  if (names.length > 0 && !names.includes(name)) continue;
  const results = [];
  for (let run = 0; run < RUNS; run += 1) results.push(await measure(open));
  const [median] = results
    .toSorted((a, b) => scoreOf(a, 'performance') - scoreOf(b, 'performance'))
    .slice((RUNS - 1) >> 1);
  writeFileSync(
    `${reports}${name.replaceAll(/\W+/g, '-')}${isDesktop ? '-desktop' : ''}.json`,
    median.report,
  );
  const scores = categories.map((category) => `${category} ${scoreOf(median, category)}`);
  const times = metrics.map((metric) => median.lhr.audits[metric].displayValue.replace(/\s/, ' '));
  print(
    `${name}: ${scores.join(', ')} (${metrics.map((metric, at) => `${metric} ${times[at]}`).join(', ')})`,
  );
  for (const category of categories) {
    if (scoreOf(median, category) >= MIN_SCORE) continue;
    isPassing = false;
    print(`  ${category} is below ${MIN_SCORE}:`);
    for (const audit of failing(median, category)) print(`    ${audit}`);
  }
}
process.exitCode = isPassing ? 0 : 1;

/** Uses a new browser each time, so that nothing is cached. */
async function measure(open) {
  const browser = await openBrowser();
  try {
    const page = await browser.newPage();
    const url = await open(page);
    // Lighthouse would clear the storage, which holds the session.
    const flags = { output: 'json', logLevel: 'error', disableStorageReset: true };
    const result = await lighthouse(url, flags, isDesktop ? desktopConfig : undefined, page);
    if (result.lhr.runtimeError) throw new Error(result.lhr.runtimeError.message);
    // A tool page that redirects to /login would be measured as the login page.
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
