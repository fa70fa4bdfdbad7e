import { expect, type Page } from '@playwright/test';
import { expectAccessible } from './accessible';

const widths = [360, 768, 1440];

/** Checks that nothing overflows the window at any width, and that both themes are accessible. */
export async function checkScreen(page: Page) {
  for (const width of widths) {
    await page.setViewportSize({ width, height: 900 });
    const overflow = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
    expect(overflow, `${page.url()} at ${width} px`).toBeLessThanOrEqual(0);
  }
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
    await expectAccessible(page);
  }
}
