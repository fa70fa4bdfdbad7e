import { gzipSync } from 'node:zlib';
import type { Page, Response } from '@playwright/test';
import { expectAccessible } from './accessible';
import { signInAsSomeoneNew } from './sign-in';
import { expectSound } from './sound';
import { expect, test } from './test';
import { expectResults, freeButton, freeUpscale, openTool } from './tool';

const BUDGET_BYTES = 150_000;
/** Magic Fix draws with konva, and react-konva brings a renderer of its own. */
const EDITOR_BUDGET_BYTES = 245_000;
const everyone = [
  '/dashboard',
  '/pricing',
  '/remove-background',
  '/upscale',
  '/magic',
  '/terms',
  '/privacy',
  '/nothing',
];

/** What a first visit of a page has to download, compressed as any server would. */
async function firstLoad(page: Page, path: string): Promise<number> {
  const scripts = new Set<string>();
  const note = (response: Response) => {
    if (new URL(response.url()).pathname.endsWith('.js')) scripts.add(response.url());
  };
  page.on('response', note);
  await page.goto(path, { waitUntil: 'networkidle' });
  page.off('response', note);
  let bytes = 0;
  for (const url of scripts) bytes += gzipSync(await (await page.request.get(url)).body()).length;
  return bytes;
}

test('the screens of a visitor are sound and small', async ({ page }) => {
  for (const path of [...everyone, '/login', '/signup', '/authcallback']) {
    expect(await firstLoad(page, path), path).toBeLessThan(BUDGET_BYTES);
    await expect(page.getByRole('heading', { level: 1 })).toBeVisible();
    await expectSound(page);
  }
  await page.setViewportSize({ width: 360, height: 740 });
  await page.getByRole('button', { name: 'Open menu' }).click();
  await expect(page.getByRole('dialog')).toBeVisible();
  await expectAccessible(page);
});

test('the screens of a user are sound and small', async ({ page }) => {
  await signInAsSomeoneNew(page);
  await openTool(page);
  const tool = new URL(page.url()).pathname;
  await freeButton(page).click();
  await expectResults(page, 1);
  await page.getByRole('button', { name: 'Compare' }).click();
  await expect(page.getByRole('img', { name: 'After' })).toBeVisible();
  await expectSound(page);

  const upscale = tool.replace('remove-background', 'upscale');
  await page.goto(upscale);
  await freeUpscale(page).click();
  await expectResults(page, 1);
  await page.getByRole('button', { name: 'Compare' }).click();
  await expect(page.getByRole('img', { name: 'After' })).toBeVisible();
  await expectSound(page);

  const magic = tool.replace('remove-background', 'magic');
  expect(await firstLoad(page, magic), magic).toBeLessThan(EDITOR_BUDGET_BYTES);
  await expect(page.getByRole('application', { name: 'Image to draw on' })).toBeVisible();
  await expectSound(page);

  const image = tool.replace('remove-background', 'images');
  for (const path of [
    '/dashboard',
    '/pricing',
    '/images',
    image,
    '/remove-background',
    tool,
    '/upscale',
    upscale,
    '/checkouts',
    '/account',
    '/magic',
  ]) {
    expect(await firstLoad(page, path), path).toBeLessThan(BUDGET_BYTES);
    await expect(page.getByRole('heading', { level: 1 })).toBeVisible();
    await expectSound(page);
  }

  await page.getByRole('button', { name: /@example\.com/ }).click();
  await expect(page.getByRole('menuitem', { name: 'Logout' })).toBeVisible();
  await expectAccessible(page);
  await page.keyboard.press('Escape');

  await page.goto(image);
  const remove = page.getByRole('button', { name: 'DELETE ALL IMAGES' });
  await remove.click();
  await expect(page.getByRole('alertdialog')).toBeVisible();
  await expectAccessible(page);
  await page.keyboard.press('Escape');
  await expect(remove).toBeFocused();
  await remove.click();
  await page.getByRole('button', { name: 'Delete all' }).click();
  await expect(page).toHaveURL(/\/images$/);
  await expect(page.getByText('No images to show')).toBeVisible();
});
