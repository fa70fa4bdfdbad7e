import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from '@playwright/test';

/** The folder for screenshots; none are taken without it. */
export const folder = process.env.RETOUCH_SCREENS;

const views = [
  { name: 'phone', width: 360, height: 780, theme: 'dark' },
  { name: 'tablet', width: 768, height: 1024, theme: 'light' },
  { name: 'desk', width: 1440, height: 900, theme: 'light' },
  { name: 'desk-dark', width: 1440, height: 900, theme: 'dark' },
] as const;

/** Captures the viewport in each size and theme as WebP, which Playwright itself does not support. */
export async function snapshot(page: Page, screen: string, only?: (typeof views)[number]['name'][]) {
  if (!folder) throw new Error('RETOUCH_SCREENS is not set');
  mkdirSync(folder, { recursive: true });
  const browser = await page.context().newCDPSession(page);
  for (const { name, width, height, theme } of views.filter((view) => !only || only.includes(view.name))) {
    await page.setViewportSize({ width, height });
    await page.emulateMedia({ colorScheme: theme, reducedMotion: 'reduce' });
    // On a phone, the page scrolls to what matters; elsewhere the top says more.
    if (name !== 'phone') await page.evaluate(() => scrollTo(0, 0));
    await page.evaluate(() => document.fonts.ready);
    await page.waitForTimeout(400);
    const { data } = await browser.send('Page.captureScreenshot', { format: 'webp', quality: 80 });
    writeFileSync(join(folder, `${screen}-${name}.webp`), Buffer.from(data, 'base64'));
  }
  await browser.detach();
}
