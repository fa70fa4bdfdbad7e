import type { BrowserContext, Page } from '@playwright/test';
import { signInAsSomeoneNew } from './sign-in';
import { expect, test } from './test';
import { credits, expectResults, openTool, openUpscale, pickAndOpenTool, runButton, upscale4 } from './tool';

/** Makes the provider take its time to renew a token. Returns the number of renewals so far. */
async function slowDownRenewals(context: BrowserContext, ms = 1_000): Promise<() => number> {
  let count = 0;
  await context.route('**/token', async (route) => {
    count += 1;
    await new Promise((resolve) => setTimeout(resolve, ms));
    await route.continue();
  });
  return () => count;
}

/** The sign-ins that the browser keeps. */
const sessions = (page: Page) =>
  page.evaluate(() => Object.keys(localStorage).filter((key) => key.startsWith('oidc.user')));

test('a paid run stays in sight while the phone sleeps for two hours', async ({ page, context }) => {
  await page.clock.install();
  await signInAsSomeoneNew(page);
  await openUpscale(page);
  const renewals = await slowDownRenewals(context);
  await upscale4(page).click();
  await expect(page.getByRole('progressbar')).toBeVisible();
  // Asleep: no network, no timers. The clock is two hours on, so the token has expired.
  await context.setOffline(true);
  await page.clock.fastForward('02:00:00');
  await context.setOffline(false);
  await expect(page.getByText('No images to show')).toBeHidden();
  await expectResults(page, 1);
  await expect(credits(page, 14)).toBeVisible();
  expect(renewals()).toBe(1);
  await expect(page.getByText('NEW')).not.toHaveCount(0);
});

test('a click right after waking waits for the renewal', async ({ page, context }) => {
  await page.clock.install();
  await signInAsSomeoneNew(page);
  await openTool(page);
  const renewals = await slowDownRenewals(context);
  await page.clock.fastForward('02:00:00');
  await runButton(page).click();
  await expectResults(page, 1);
  await expect(page.getByText('Authentication token is missing.')).toBeHidden();
  expect(renewals()).toBe(1);
});

test('three tabs share one sign-in, one run, and one sign-out', async ({ page, context }) => {
  await signInAsSomeoneNew(page);
  await openUpscale(page);
  // A link opened with the middle button.
  const opening = context.waitForEvent('page');
  await page.getByRole('link', { name: 'My Images' }).first().click({ button: 'middle' });
  const second = await opening;
  await expect(second.getByRole('heading', { name: 'My Images' })).toBeVisible();
  const third = await context.newPage();
  await third.goto(page.url());
  await expect(upscale4(third)).toBeEnabled();

  await upscale4(page).click();
  await expect(third.getByRole('progressbar')).toBeVisible();
  for (const tab of [page, third]) {
    await expectResults(tab, 1);
    await expect(tab.getByText('NEW')).not.toHaveCount(0);
  }
  for (const tab of [page, second, third]) await expect(credits(tab, 14)).toBeVisible();

  await third.goto('/login');
  await expect(second).toHaveURL(/\/login$/);
  await expect(page).toHaveURL(/\/login$/);
  expect(await sessions(page)).toEqual([]);
});

test('tabs that wake together renew the token once', async ({ page, context }) => {
  await signInAsSomeoneNew(page);
  // Longer than the tabs need to load, so that all of them want to renew it.
  const renewals = await slowDownRenewals(context, 3_000);
  const expire = () => {
    for (const [key, value] of Object.entries(localStorage)) {
      if (!key.startsWith('oidc.user')) continue;
      localStorage.setItem(key, JSON.stringify({ ...JSON.parse(value), expires_at: 1 }));
    }
  };
  await page.evaluate(expire);
  const tabs = [page, await context.newPage(), await context.newPage()];
  await Promise.all(tabs.map((tab) => tab.goto('/images')));
  for (const tab of tabs) {
    await expect(tab.getByText('No images to show')).toBeVisible();
    await expect(tab).toHaveURL(/\/images$/);
  }
  expect(renewals()).toBe(1);
});

test('ten minutes offline past the expiry end no session', async ({ page, context }) => {
  await page.clock.install();
  await signInAsSomeoneNew(page);
  await pickAndOpenTool(page);
  const tool = page.url();
  await page.clock.fastForward('00:55:00');
  await context.setOffline(true);
  await expect(page.getByText('You are offline')).toBeVisible();
  await page.clock.fastForward('00:10:00');
  await page.waitForTimeout(1_000);
  await expect(page).toHaveURL(tool);
  await runButton(page).click();
  await expect(page.getByText('The connection was lost. Please try again.')).toBeVisible();

  await context.setOffline(false);
  await expect(page.getByText('You are offline')).toBeHidden();
  await runButton(page).click();
  await expectResults(page, 1);
  await expect(page).toHaveURL(tool);
});

test.describe('after a deploy', () => {
  test.use({ expectedRefusals: [404] });

  test('a missing part asks for one reload, and a running job stays in sight', async ({ page }) => {
    await signInAsSomeoneNew(page);
    await openUpscale(page);
    await page.route(/\/assets\/(zoom-view|active-jobs-menu|result-details)-[^/]+\.js$/, (route) =>
      route.fulfill({ status: 404, body: 'Not found' }),
    );
    await page.route(/\/$/, (route) =>
      route.fulfill({ contentType: 'text/html', body: '<script type="module" src="/assets/index-new.js">' }),
    );
    await upscale4(page).click();
    await expectResults(page, 1);
    await page.getByRole('button', { name: 'Zoom', exact: true }).click();
    await expect(page.getByText('This part of the page could not be loaded.')).toBeVisible();
    await expect(page.getByText('Retouch was updated.')).toBeVisible();
    // The rest of the page works.
    await page.getByRole('button', { name: 'Compare' }).click();
    await expect(page.getByRole('group', { name: 'Compare as' })).toBeVisible();

    await page.unrouteAll();
    await page.getByRole('button', { name: 'Reload' }).click();
    await expectResults(page, 1);
    await expect(page.getByText('Retouch was updated.')).toBeHidden();
  });
});

test.describe('code that the server could not send for a moment', () => {
  test.use({ expectedRefusals: [503], viewport: { width: 390, height: 844 } });

  // Firefox 153 never requests it again before a reload.
  test('is there after the reload that the page asks for', { tag: '@firefox' }, async ({ page }) => {
    await page.route(/\/assets\/mobile-drawer-[^/]+\.js$/, (route) =>
      route.fulfill({ status: 503, contentType: 'text/javascript' }),
    );
    await page.goto('/dashboard');
    const menu = page.getByRole('button', { name: 'Open menu' });
    await menu.click();
    await expect(page.getByText('The connection was lost. Please try again.')).toBeVisible();
    await page.unrouteAll();
    await expect(page.getByText('Part of this page could not be loaded.')).toBeVisible();
    await page.getByRole('button', { name: 'Reload' }).click();
    await menu.click();
    await expect(page.getByRole('dialog').getByRole('link', { name: 'Upscale' })).toBeVisible();
  });
});

test.describe('pictures whose URLs have expired', () => {
  test.use({ expectedRefusals: [403] });

  test('are requested again, and can be downloaded', async ({ page }) => {
    await signInAsSomeoneNew(page);
    await openTool(page);
    await runButton(page).click();
    await expectResults(page, 1);
    // The URL that the page has is refused; the next answer of the API has another one.
    const [refused] = await page
      .getByRole('img', { name: 'Result 1', includeHidden: true })
      .evaluateAll((images) => images.map((image) => (image as HTMLImageElement).src));
    await page.route('**/api/files/**', (route) =>
      route.request().url().includes('fresh')
        ? route.continue({ url: route.request().url().replace('&fresh', '') })
        : route.fulfill({ status: 403, body: '{"detail":"Expired"}' }),
    );
    await page.route('**/api/rmbg-images/*', async (route) => {
      const answer = await route.fetch();
      const text = (await answer.text()).replace(/(signature=[0-9a-f]+)/g, '$1&fresh');
      await route.fulfill({ response: answer, body: text });
    });
    const downloading = page.waitForEvent('download');
    await page.getByRole('button', { name: 'Download' }).click();
    await downloading;
    await expect(page.getByText('Failed to download image')).toBeHidden();
    await expect(page.getByRole('img', { name: 'Result 1', includeHidden: true })).not.toHaveAttribute(
      'src',
      refused ?? '',
    );
  });
});
