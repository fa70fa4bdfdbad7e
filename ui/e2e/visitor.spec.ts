import { expectAccessible } from './accessible';
import { aPhoto, aPicture, expectCutout, expectUpscaled } from './photo';
import { pictureOf } from './pixel';
import { expect, test } from './test';
import { freeButton, freeUpscale } from './tool';

// A network address has ten free runs per hour; these tests use two of them.
test.describe('a visitor', () => {
  test('removes one background without an account, and finds it again', async ({ page }) => {
    const photo = aPhoto();
    await page.goto('/remove-background');
    await page.getByLabel('Image file').setInputFiles(photo);
    await expect(page.getByRole('link', { name: 'Remove Bg AI (Requires login)' })).toBeVisible();
    await freeButton(page).dblclick();

    const downloading = page.waitForEvent('download');
    await page.getByRole('button', { name: 'Download' }).click({ timeout: 90_000 });
    await expectCutout(page, await downloading);
    await expect(freeButton(page)).toBeDisabled();
    await page.getByRole('button', { name: 'Background' }).click();
    await page.getByRole('radio', { name: 'Black' }).check({ force: true });
    const again = page.waitForEvent('download');
    await page.getByRole('button', { name: 'Download' }).click();
    const [red, green, blue] = (await pictureOf(page, await again, [[330, 60]])).at(330, 60);
    expect(Math.max(red ?? 255, green ?? 255, blue ?? 255)).toBeLessThan(8);
    await page.getByRole('button', { name: 'Compare' }).click();
    await expect(page.getByRole('group', { name: 'Compare as' })).toBeVisible();
    await expectAccessible(page);

    await page.getByRole('button', { name: 'Choose another image' }).click();
    await page.getByLabel('Image file').setInputFiles(photo);
    await freeButton(page).click();
    // The result that the file already has, also after a reload.
    await expect(page.getByRole('button', { name: 'Download' })).toBeVisible();
    await page.reload();
    await expect(page.getByRole('button', { name: 'Download' })).toBeVisible();
  });

  test('upscales one image without an account, and finds it again', async ({ page }) => {
    const photo = aPhoto();
    await page.goto('/upscale');
    await page.getByLabel('Image file').setInputFiles(aPicture(40, 1441));
    await expect(page.getByText('Image dimensions too big (Max 1440x1440)')).toBeVisible();
    await expect(freeUpscale(page)).toBeDisabled();
    await page.getByRole('button', { name: 'Cancel' }).click();

    await page.getByLabel('Image file').setInputFiles(photo);
    await expect(page.getByRole('link', { name: 'Upscale 4X (Requires login)' })).toBeVisible();
    await freeUpscale(page).dblclick();

    const downloading = page.waitForEvent('download');
    await page.getByRole('button', { name: 'Download' }).click({ timeout: 90_000 });
    await expectUpscaled(await downloading, 2);
    await expect(page.getByText(/^1024 × 1024 px/)).toBeVisible();
    await expect(freeUpscale(page)).toBeDisabled();
    await page.getByRole('button', { name: 'Compare' }).click();
    await expect(page.getByRole('group', { name: 'Compare as' })).toBeVisible();
    await expectAccessible(page);

    await page.getByRole('button', { name: 'Choose another image' }).click();
    await page.getByLabel('Image file').setInputFiles(photo);
    await freeUpscale(page).click();
    await expect(page.getByRole('button', { name: 'Download' })).toBeVisible();
  });

  test('is redirected from every page of an account', async ({ page }) => {
    const image = '01a1fccb-f6fe-70f2-a7cb-20c7a37d0121';
    for (const path of [
      '/images',
      '/checkouts',
      `/checkouts/${image}`,
      '/checkout',
      '/return?session_id=cs_test_1',
      '/account',
      `/remove-background/${image}`,
      `/upscale/${image}`,
      `/magic/${image}`,
    ]) {
      await page.goto(path);
      await expect(page).toHaveURL(/\/login$/);
    }
  });
});
