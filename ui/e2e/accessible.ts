import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { expect, type Page } from '@playwright/test';
import type Axe from 'axe-core';

const source = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

export async function expectAccessible(page: Page) {
  // axe crashes Firefox 153. Its rules hardly depend on the browser, so checking in Chromium is enough.
  if (page.context().browser()?.browserType().name() === 'firefox') return;
  if (!(await page.evaluate(() => 'axe' in window))) await page.evaluate(source);
  expect(await page.evaluate(findViolations)).toEqual([]);
}

/** Runs in the page, and checks it without its frames. */
async function findViolations() {
  const { axe } = window as unknown as { axe: typeof Axe };
  // Elements that fade in have too little contrast. A toast's progress bar, which takes seconds, and pulses do not matter.
  const fades = document
    .getAnimations()
    .filter(({ effect }) => Number(effect?.getComputedTiming().endTime) < 1_000);
  await Promise.allSettled(fades.map(({ finished }) => finished));
  const { violations } = await axe.run(document, {
    runOnly: { type: 'tag', values: ['wcag2a', 'wcag2aa', 'wcag21aa', 'wcag22aa'] },
    resultTypes: ['violations'],
    iframes: false,
  });
  return violations.map(({ id, nodes }) => ({ id, where: nodes.map(({ target }) => target.join(' ')) }));
}
