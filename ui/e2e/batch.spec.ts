import { readFile } from 'node:fs/promises';
import type { Page } from '@playwright/test';
import { unzipSync } from 'fflate';
import { expectAccessible } from './accessible';
import { checkScreen } from './check-screen';
import { aPhoto, aPicture } from './photo';
import { startSignedIn } from './sign-in';
import { expect, test } from './test';
import { credits, expectResults } from './tool';

/** Just too large for the slow net that a CPU upscales small pictures with. */
const named = (name: string, file = aPicture(300, 240)) => ({ ...file, name });

/** Chooses files and waits until `accepted` of them have passed the checks. */
async function choose(page: Page, tool: string, files: ReturnType<typeof aPhoto>[], accepted = files.length) {
  await page.goto(tool);
  await page.getByLabel('Image file').setInputFiles(files);
  await expect(page.getByRole('heading', { name: `${accepted} images` })).toBeVisible();
}
const row = (page: Page, name: string) => page.getByRole('listitem').filter({ hasText: name });
const start = (page: Page, count: number) => page.getByRole('button', { name: `Start ${count} runs` });
const done = (page: Page, text: string) =>
  expect(page.getByText(text, { exact: true })).toBeVisible({ timeout: 90_000 });

test('a batch of images is upscaled and downloaded as one ZIP file', async ({ page }) => {
  await startSignedIn(page);
  const large = named('large.png', aPicture(1441, 20));
  const files = [named('cat.png'), named('cat.png'), named('dog.png', aPicture(64, 96)), large];
  await choose(page, '/upscale', files, 3);
  await expect(row(page, 'large.png')).toContainText('Image dimensions too big (Max 1440x1440)');
  await expect(page.getByText('3 images × 3 credits = 9 credits')).toBeVisible();
  await checkScreen(page);
  await start(page, 3).click();
  await done(page, '3 of 3 done');
  // The list shows how each run ended.
  await expect(page.getByRole('alert')).toHaveCount(0);
  await expect(credits(page, 11)).toBeVisible();
  await expectAccessible(page);

  const downloading = page.waitForEvent('download');
  await page.getByRole('button', { name: 'Download all (ZIP)' }).click();
  const zip = await downloading;
  expect(zip.suggestedFilename()).toBe('retouch-upscale.zip');
  const made = unzipSync(await readFile(await zip.path()));
  expect(Object.keys(made).sort()).toEqual(['cat-2x (2).png', 'cat-2x.png', 'dog-2x.png']);
  const dog = Buffer.from(made['dog-2x.png'] ?? []);
  expect([dog.readUInt32BE(16), dog.readUInt32BE(20)]).toEqual([128, 192]);

  // Each result is also on the page of its image.
  await row(page, 'dog.png').getByRole('link').click();
  await expect(page).toHaveURL(/\/upscale\/[0-9a-f-]{36}$/);
  await expectResults(page, 1);
  await page.goBack();
  await expect(page.getByText('3 of 3 done')).toBeVisible();
  await page.getByRole('link', { name: 'My Images' }).first().click();
  await expect(page.getByRole('link', { name: /^Select/ })).toHaveCount(3);
});

test('on a phone each file is one row with a thumb-sized Remove button', async ({ page }) => {
  await page.setViewportSize({ width: 360, height: 740 });
  await startSignedIn(page);
  const name = 'a-long-name-that-no-phone-has-the-room-for.png';
  await choose(page, '/upscale', [named(name), named('b.png')]);
  const remove = page.getByRole('button', { name: `Remove ${name}` });
  const [button, text] = [await remove.boundingBox(), await page.getByTitle(name).boundingBox()];
  if (!button || !text) throw new Error('the row is not visible');
  expect(Math.min(button.width, button.height)).toBeGreaterThanOrEqual(44);
  expect(button.x).toBeGreaterThanOrEqual(text.x + text.width);
  expect(button.y).toBeLessThan(text.y + text.height);
  await checkScreen(page);
});

test('a reload keeps every file that was sent', async ({ page }) => {
  await startSignedIn(page);
  await choose(page, '/remove-background', [named('a.jpg', aPhoto()), named('b.jpg', aPhoto())]);
  await page.getByRole('radio', { name: /^Remove Bg Free/ }).check();
  await expect(page.getByText('2 images, free')).toBeVisible();
  await start(page, 2).click();
  // Both have been sent once they are queued.
  await expect(page.getByText(/^(Queued|Running|Done)/)).toHaveCount(2);
  await page.reload();
  await done(page, '2 of 2 done');
  await expect(credits(page, 20)).toBeVisible();
});

test('a batch can be canceled and then costs nothing', async ({ page }) => {
  await startSignedIn(page);
  const slow = () => aPicture(640, 640);
  await choose(page, '/upscale', [named('a.png', slow()), named('b.png', slow())]);
  // A free run costs nothing anyway.
  await page.getByRole('radio', { name: /^Upscale 2X/ }).check();
  await start(page, 2).click();
  await expect(page.getByText(/^(Queued|Running)/).first()).toBeVisible();
  await page.getByRole('button', { name: 'Cancel all' }).click();
  await done(page, '0 of 2 done · 2 canceled');
  await expect(credits(page, 20)).toBeVisible();
  await page.getByRole('button', { name: 'New batch' }).click();
  await expect(page.getByRole('button', { name: 'Choose files' })).toBeVisible();
});

test.describe('refusals', () => {
  test.use({ expectedRefusals: [402] });

  test('stops when the credits run out, says so, and keeps the results', async ({ page }) => {
    await startSignedIn(page);
    const names = ['a.png', 'b.png', 'c.png', 'd.png', 'e.png'];
    await choose(
      page,
      '/upscale',
      names.map((name) => named(name)),
    );
    await page.getByRole('radio', { name: /^Upscale 4X/ }).check();
    await expect(page.getByText('5 images × 6 credits = 30 credits')).toBeVisible();
    await expect(page.getByText(/enough credits for the first 3 of 5/)).toBeVisible();
    await expectAccessible(page);
    await start(page, 3).click();
    await done(page, '3 of 5 done · 2 not started');
    await expect(credits(page, 2)).toBeVisible();
    await expect(page.getByText('Finished results are kept, and runs in progress continue.')).toBeVisible();
    await expectAccessible(page);
    await page.getByRole('link', { name: 'Get more credits' }).click();
    await expect(page).toHaveURL(/\/pricing$/);
    await page.goBack();
    await expect(page.getByText('3 of 5 done · 2 not started')).toBeVisible();
  });
});
