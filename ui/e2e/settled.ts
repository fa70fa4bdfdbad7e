import type { Page, Request } from '@playwright/test';

const QUIET_MS = 300;

/** Opens a page and waits until it requests nothing more. A user's event stream stays open, so the network is never idle. */
export async function openSettled(page: Page, path: string) {
  const inFlight = new Set<Request>();
  let changedAt = Date.now();
  const begin = (request: Request) => {
    if (request.headers().accept === 'text/event-stream') return;
    // The requests of the page before may end without an event.
    if (request.isNavigationRequest()) inFlight.clear();
    inFlight.add(request);
    changedAt = Date.now();
  };
  const end = (request: Request) => {
    if (inFlight.delete(request)) changedAt = Date.now();
  };
  page.on('request', begin).on('requestfinished', end).on('requestfailed', end);
  await page.goto(path);
  do {
    await page.waitForTimeout(50);
    // A script that takes long may request more.
    await page.evaluate(() => new Promise<void>((resolve) => requestIdleCallback(() => resolve())));
  } while (inFlight.size > 0 || Date.now() - changedAt < QUIET_MS);
  page.off('request', begin).off('requestfinished', end).off('requestfailed', end);
}
