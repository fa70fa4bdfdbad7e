import type { Page, Response } from '@playwright/test';

const QUIET_MS = 800;

/** Opens a page and waits until no more answers arrive. A user's event stream stays open, so the network is never idle. */
export async function openSettled(page: Page, path: string) {
  let answeredAt = Date.now();
  const note = (_: Response) => {
    answeredAt = Date.now();
  };
  page.on('response', note);
  await page.goto(path);
  while (Date.now() - answeredAt < QUIET_MS) await page.waitForTimeout(100);
  page.off('response', note);
}
