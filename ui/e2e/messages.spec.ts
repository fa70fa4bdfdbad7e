import type { Page } from '@playwright/test';
import { drawWithMouse, prompt } from './drawing';
import { aPhoto } from './photo';
import { startSignedIn } from './sign-in';
import { expect, test } from './test';
import { expectResults, freeButton, freeUpscale, magicFix, openTool, runButton, upscale2 } from './tool';

// Every message for a failed call. Refusals for a specific reason (Free Exists, credits, limits) are tested with the
// tools.

const toast = (page: Page, text: string) =>
  page
    .locator('.Toastify__toast-container')
    .getByRole('alert')
    .filter({ hasText: new RegExp(`^${text}$`) });

type Call = { method: string; path: string };

/** Makes one call fail with the plain text of a proxy. */
async function breakCall(page: Page, { method, path }: Call) {
  await page.route(
    ({ pathname }) => new RegExp(`^${path}$`).test(pathname),
    (route) =>
      route.request().method() === method
        ? route.fulfill({ status: 500, contentType: 'text/plain', body: 'internal error' })
        : route.fallback(),
  );
}

/** Opens a page with only this call broken. */
async function openBroken(page: Page, address: string, call: Call) {
  await page.unrouteAll({ behavior: 'ignoreErrors' });
  await breakCall(page, call);
  await page.goto(address);
}

const choose = async (page: Page) => page.getByLabel('Image file').setInputFiles(aPhoto());
const clickUpload = (page: Page) => page.getByRole('button', { name: 'Upload', exact: true }).click();

test.use({ expectedRefusals: [500] });

test('messages for a user when a call fails', async ({ page }) => {
  await startSignedIn(page);
  await openTool(page);
  const id = page.url().split('/').at(-1) ?? '';
  await freeButton(page).click();
  await expectResults(page, 1);
  const tool = (name: string) => `/${name}/${id}`;
  const anyOf = (list: string) => `/api/${list}/[^/]+`;

  for (const [address, list, message] of [
    [tool('remove-background'), 'rmbg-images', 'Failed to load images with removed background'],
    [tool('upscale'), 'upscale', 'Failed to load upscaled images'],
    [tool('magic'), 'magic-images', 'Failed to load magic fix images'],
    [tool('images'), 'images', 'Failed to load your original image'],
    ['/checkouts/01a1fccb-f6fe-70f2-a7cb-20c7a37d0121', 'checkouts', 'Failed to load checkout'],
  ] as const) {
    await openBroken(page, address, { method: 'GET', path: anyOf(list) });
    await expect(toast(page, message), address).toBeVisible();
  }

  await openBroken(page, '/images', { method: 'GET', path: '/api/images' });
  await expect(toast(page, 'Failed to load your images')).toBeVisible();
  await expect(page.getByText('Failed to load images. Please try again later')).toBeVisible();

  await openBroken(page, '/checkouts', { method: 'GET', path: '/api/checkouts/' });
  await expect(toast(page, 'Failed to load checkouts')).toBeVisible();

  await openBroken(page, '/images', { method: 'POST', path: '/api/images/upload' });
  await choose(page);
  await clickUpload(page);
  await expect(toast(page, 'Failed to upload image')).toBeVisible();
  await expect(page.getByText('HTTP error! status: 500, message: internal error')).toBeVisible();

  await openBroken(page, tool('remove-background'), {
    method: 'POST',
    path: '/api/rmbg-images/remove-bg-ai',
  });
  await runButton(page).click();
  await expect(toast(page, 'Failed to remove image background')).toBeVisible();
  await expect(page.getByText('HTTP error! status: 500, message: internal error')).toBeVisible();
  await expect(runButton(page)).toBeEnabled();

  await openBroken(page, tool('upscale'), { method: 'POST', path: '/api/upscale/upscale-ai-2' });
  await upscale2(page).click();
  await expect(toast(page, 'Failed to upscale')).toBeVisible();

  await openBroken(page, tool('images'), { method: 'DELETE', path: anyOf('rmbg-images') });
  await page.getByRole('button', { name: /^DELETE Background removed/ }).click();
  await page.getByRole('alertdialog').getByRole('button', { name: 'Delete', exact: true }).click();
  await expect(toast(page, 'Failed to delete image')).toBeVisible();
  await expect(page.getByRole('button', { name: /^DELETE Background removed/ })).toBeVisible();

  await openBroken(page, tool('images'), { method: 'DELETE', path: anyOf('images') });
  await page.getByRole('button', { name: 'DELETE ALL IMAGES' }).click();
  await page.getByRole('alertdialog').getByRole('button', { name: 'Delete all' }).click();
  await expect(toast(page, 'Failed to delete image, try again later')).toBeVisible();
  await expect(page).toHaveURL(tool('images'));

  await openBroken(page, '/account', { method: 'GET', path: '/api/user/export' });
  await page.getByRole('button', { name: 'Export my data' }).click();
  await expect(toast(page, 'Failed to export your data, try again later')).toBeVisible();
});

test('messages of Magic Fix', async ({ page }) => {
  await startSignedIn(page);
  await openTool(page);
  await page.goto(page.url().replace('/remove-background/', '/magic/'));
  await magicFix(page).click();
  await expect(toast(page, 'Prompt is required')).toBeVisible();
  await prompt(page).fill('x'.repeat(501));
  await magicFix(page).click();
  await expect(toast(page, 'Prompt is too long, maximum of 500 letters is allowed')).toBeVisible();
  await prompt(page).fill('remove the object');
  await magicFix(page).click();
  await expect(toast(page, 'You have to draw to select area you want to fix 1')).toBeVisible();

  await breakCall(page, { method: 'POST', path: '/api/magic-images/fix/[^/]+' });
  await drawWithMouse(page);
  await magicFix(page).click();
  await expect(toast(page, 'Failed to magic fix image, please try again')).toBeVisible();
});

test('messages for a visitor when a free run fails', async ({ page }) => {
  await openBroken(page, '/remove-background', { method: 'POST', path: '/api/free/remove-bg-fr' });
  await choose(page);
  await freeButton(page).click();
  await expect(toast(page, 'Failed to remove background, try again later')).toBeVisible();
  await expect(freeButton(page)).toBeEnabled();

  await openBroken(page, '/upscale', { method: 'POST', path: '/api/free/upscale-fr' });
  await choose(page);
  await freeUpscale(page).click();
  await expect(toast(page, 'Failed to upscale')).toBeVisible();
});

test('toasts appear at the top right, are reachable with Alt+T, and close after five seconds', async ({
  page,
}) => {
  await startSignedIn(page);
  // Measured in the page, because Playwright may look late.
  await page.addInitScript(() => {
    new MutationObserver(() => {
      const isShown = document.querySelector('.Toastify__toast') !== null;
      const isNoted = performance.getEntriesByName('shown').length > 0;
      if (isShown && !isNoted) performance.mark('shown');
      if (!isShown && isNoted) performance.measure('duration', 'shown');
    }).observe(document, { childList: true, subtree: true });
  });
  await openBroken(page, '/checkouts', { method: 'GET', path: '/api/checkouts/' });
  const alert = toast(page, 'Failed to load checkouts');
  await expect(alert).toBeVisible();
  const region = page.getByRole('region', { name: 'Notifications Alt+T' });
  // The region itself has no size: its toasts are positioned over the page.
  await expect(region).toBeAttached();
  const box = await alert.boundingBox();
  const { width } = page.viewportSize() ?? { width: 0 };
  expect(box && box.x + box.width).toBeGreaterThan(width - 40);
  expect(box?.y).toBeLessThan(140);

  await expect(page.locator('.Toastify__toast')).toHaveCount(0);
  const duration = await page.evaluate(() => performance.getEntriesByName('duration')[0]?.duration);
  expect(duration).toBeGreaterThan(5_000);
  expect(duration).toBeLessThan(8_000);

  await page.getByRole('button', { name: 'Try again' }).click();
  await expect(alert).toBeVisible();
  await page.keyboard.press('Alt+t');
  await expect(page.locator('.Toastify__toast:focus')).toContainText('Failed to load checkouts');
});
