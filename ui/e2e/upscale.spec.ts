import type { Page } from '@playwright/test';
import { expectAccessible } from './accessible';
import { aPhoto, aPicture, expectUpscaled } from './photo';
import { signInAsSomeoneNew, startSignedIn } from './sign-in';
import { expect, test } from './test';
import { credits, expectResults, freeUpscale, openAgain, openUpscale, upscale2, upscale4 } from './tool';

const TOO_BIG = 'Image dimensions too big (Max 1440x1440)';

/** Takes a CPU several seconds, so that a test can interrupt the run. */
const slowPicture = () => aPicture(640, 640);

const stripItem = (page: Page, result: number) =>
  page.getByRole('listitem').filter({ has: page.getByRole('img', { name: `Result ${result}` }) });

async function download(page: Page) {
  const downloading = page.waitForEvent('download');
  await page.getByRole('button', { name: 'Download' }).click();
  return downloading;
}

test('a new user upscales for 3, for 6 and for no credits, and downloads the results', async ({ page }) => {
  await signInAsSomeoneNew(page);
  await page.getByRole('link', { name: 'Upscale' }).first().click();
  await expect(page.getByText('No images to show')).toBeVisible();
  await page.getByLabel('Image file').setInputFiles(aPhoto());
  await page.getByRole('button', { name: 'Upload', exact: true }).click();
  await expect(page).toHaveURL(/\/upscale\/[0-9a-f-]{36}$/);

  await upscale2(page).click();
  await expectResults(page, 1);
  await expect(credits(page, 17)).toBeVisible();
  await expect(page.getByText(/^1024 × 1024 px/)).toBeVisible();
  await expectUpscaled(await download(page), 2);

  await upscale4(page).click();
  await expectResults(page, 2);
  await expect(credits(page, 11)).toBeVisible();
  await expect(page.getByText(/^2048 × 2048 px/)).toBeVisible();
  await expect(stripItem(page, 1)).toHaveText('2X');
  await expect(stripItem(page, 2)).toHaveText('4XNEW');
  await expectUpscaled(await download(page), 4);

  await freeUpscale(page).click();
  await expectResults(page, 3);
  await expect(page.getByText('Free run used for this image')).toBeVisible();
  await expect(freeUpscale(page)).toBeDisabled();
  await expect(credits(page, 11)).toBeVisible();
  await expectUpscaled(await download(page), 2);

  await page.getByRole('button', { name: 'Compare' }).click();
  await expect(page.getByRole('group', { name: 'Compare as' })).toBeVisible();
  await expectAccessible(page);

  // The results and the credits survive a reload.
  await page.reload();
  await expectResults(page, 3);
  await expect(freeUpscale(page)).toBeDisabled();
  await expect(credits(page, 11)).toBeVisible();
});

test('a reload during an upscale loses nothing', { tag: '@firefox' }, async ({ page }) => {
  await signInAsSomeoneNew(page);
  await openUpscale(page, slowPicture());
  const accepted = page.waitForResponse(
    (response) => response.request().method() === 'POST' && response.url().includes('/upscale-ai-4'),
  );
  await upscale4(page).click();
  expect((await accepted).status()).toBe(202);
  await page.reload();
  await expectResults(page, 1);
  await expect(page.getByText(/^2560 × 2560 px/)).toBeVisible();
  await expect(credits(page, 14)).toBeVisible();
  await expect(upscale2(page)).toBeEnabled();
});

test('a run that ends while another page is open shows a toast', async ({ page }) => {
  await startSignedIn(page);
  await openUpscale(page, slowPicture());
  const { pathname } = new URL(page.url());
  await upscale4(page).click();
  await expect(page.getByRole('progressbar')).toBeVisible();
  await expect(page).toHaveTitle(/^\d+% · Upscale · Retouch$/);
  await page.getByRole('link', { name: 'My Images' }).first().click();

  const toast = page.getByRole('alert').filter({ hasText: 'Upscale 4X is ready' });
  await expect(toast).toBeVisible({ timeout: 90_000 });
  await expect(credits(page, 14)).toBeVisible();
  await toast.getByRole('link', { name: 'Show it' }).click();
  await expect(page).toHaveURL(pathname);
  await expectResults(page, 1);
  await expect(page.getByText(/^2560 × 2560 px/)).toBeVisible();
});

test('two tools process an image at once, and each page lists the other run', async ({ page }) => {
  await startSignedIn(page);
  await openUpscale(page, slowPicture());
  const upscale = page.url();
  await upscale4(page).click();
  await expect(page.getByRole('progressbar')).toBeVisible();

  await page.goto(upscale.replace('/upscale/', '/remove-background/'));
  const elsewhere = page.getByRole('list', { name: 'Running' });
  await expect(elsewhere.getByRole('link', { name: /^Upscale 4X/ })).toBeVisible();
  await page.getByRole('button', { name: 'Remove Bg', exact: true }).click();
  await expectAccessible(page);

  await page.goto(upscale.replace('/upscale/', '/images/'));
  await expect(elsewhere.getByRole('link', { name: /^Upscale 4X/ })).toBeVisible();
  // The results appear without a reload.
  await expect(page.getByRole('img', { name: 'Background removed, result 1' })).toBeVisible({
    timeout: 90_000,
  });
  await expect(page.getByRole('img', { name: 'Upscaled, result 1' })).toBeVisible({ timeout: 90_000 });
  await expect(elsewhere).toBeHidden();
  await expect(credits(page, 14)).toBeVisible();
});

test('a canceled upscale costs nothing, and the next one works', async ({ page }) => {
  await startSignedIn(page);
  await openUpscale(page, slowPicture());
  await upscale4(page).click();
  await page.getByRole('button', { name: 'Cancel' }).click();
  await expect(page.getByRole('progressbar')).toBeHidden();
  await expect(page.getByText('No images to show')).toBeVisible();
  await expect(credits(page, 20)).toBeVisible();
  await upscale2(page).click();
  await expectResults(page, 1);
  await expect(credits(page, 17)).toBeVisible();
});

test('an image above the limit is rejected, and a stored one cannot be upscaled', async ({ page }) => {
  const picture = aPicture(1441, 200);
  await startSignedIn(page);
  await page.goto('/upscale');
  await page.getByLabel('Image file').setInputFiles(picture);
  await expect(page.getByText(TOO_BIG)).toBeVisible();
  await expect(page.getByRole('button', { name: 'Upload', exact: true })).toBeDisabled();

  await page.goto('/images');
  await page.getByLabel('Image file').setInputFiles(picture);
  await page.getByRole('button', { name: 'Upload', exact: true }).click();
  await expect(page).toHaveURL(/\/images\/[0-9a-f-]{36}$/);
  await page.getByRole('navigation', { name: 'Tools' }).getByRole('link', { name: 'Upscale' }).click();
  await expect(page).toHaveURL(/\/upscale\/[0-9a-f-]{36}$/);
  await expect(page.getByText(TOO_BIG)).toBeVisible();
  await expect(page.getByText('No images to show')).toBeVisible();
  for (const action of [upscale2(page), upscale4(page), freeUpscale(page)]) {
    await expect(action).toBeDisabled();
  }
  await expectAccessible(page);
});

test("an image's page lists its upscales and deletes them", async ({ page }) => {
  await startSignedIn(page);
  await openUpscale(page);
  const tool = page.url();
  await freeUpscale(page).click();
  await expectResults(page, 1);

  await page.goto(tool.replace('/upscale/', '/images/'));
  const section = page.locator('section').filter({ has: page.getByRole('heading', { name: 'Upscaled' }) });
  await expect(section.getByRole('img', { name: 'Upscaled, result 1' })).toBeVisible();
  await expect(section.getByText('2X', { exact: true })).toBeVisible();
  await section.getByRole('button', { name: 'DELETE Upscaled, result 1' }).click();
  await page.getByRole('alertdialog').getByRole('button', { name: 'Delete', exact: true }).click();
  await expect(section.getByText('No Images to Show')).toBeVisible();

  // Deleting the result does not restore the free run.
  await page.goto(tool);
  await expect(page.getByText('No images to show')).toBeVisible();
  await expect(upscale2(page)).toBeEnabled();
  await expect(freeUpscale(page)).toBeDisabled();
});

test.describe('refusals', () => {
  test.use({ expectedRefusals: [402] });

  test('a second free upscale of an image is refused', async ({ page }) => {
    await startSignedIn(page);
    await openUpscale(page);
    const other = await openAgain(page);
    await expect(freeUpscale(other)).toBeEnabled();

    await freeUpscale(page).click();
    await expectResults(page, 1);
    await expect(freeUpscale(page)).toBeDisabled();

    // The other tab has heard of it.
    await expectResults(other, 1);
    await expect(freeUpscale(other)).toBeDisabled();
    await expect(credits(other, 20)).toBeVisible();
  });

  test('after three 4X upscales there are not enough credits for a 2X', async ({ page }) => {
    await startSignedIn(page);
    await openUpscale(page);
    for (const run of [1, 2, 3]) {
      await upscale4(page).click();
      // The same run makes the same picture, so the page asks first.
      if (run > 1) await page.getByRole('alertdialog').getByRole('button', { name: 'Run again' }).click();
      await expectResults(page, run);
      await expect(credits(page, 20 - run * 6)).toBeVisible();
      await expect(upscale2(page)).toBeEnabled();
    }
    await upscale2(page).click();
    const notice = page.getByRole('alert').filter({ hasText: 'Not enough credits' });
    await expect(notice).toBeVisible();
    await notice.getByRole('link').click();
    await expect(page).toHaveURL(/\/pricing$/);
  });
});

test('before paying, a detail of a small image shows what the larger model makes of it', async ({ page }) => {
  await startSignedIn(page);
  // On a CPU, the larger model serves only images up to this size.
  await openUpscale(page, aPicture(240, 200));
  await page.getByRole('button', { name: 'Compare a detail' }).click();
  const slider = page.getByRole('slider', { name: 'Your image, enlarged and Upscale 2X of a detail' });
  await expect(slider).toBeVisible({ timeout: 90_000 });
  const sample = page.getByRole('region', { name: 'Compare before you pay' }).locator('img');
  const size = await sample.evaluate((image) => {
    const { naturalWidth, naturalHeight } = image as HTMLImageElement;
    return [naturalWidth, naturalHeight];
  });
  expect(size).toEqual([256, 256]);
  await expect(credits(page, 20)).toBeVisible();
  await expect(page.getByText('No images to show')).toBeVisible();
  await expectAccessible(page);
});
