import { expect, type Page } from '@playwright/test';
import { expectAccessible } from './accessible';

const widths = [360, 768, 1440];

/** In both themes, nothing wider than the window at any width. */
export async function expectSound(page: Page) {
  for (const width of widths) {
    await page.setViewportSize({ width, height: 900 });
    const excess = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
    expect(excess, `${page.url()} at ${width} px`).toBeLessThanOrEqual(0);
  }
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
    await expectAccessible(page);
  }
}
