import { expectAccessible } from './accessible';
import { signInAsSomeoneNew } from './sign-in';
import { expectSound } from './sound';
import { expect, test } from './test';
import { expectResults, freeButton, freeUpscale, openTool } from './tool';

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

test('the screens of a visitor are sound', async ({ page }) => {
  for (const path of [...everyone, '/login', '/signup', '/authcallback']) {
    await page.goto(path, { waitUntil: 'networkidle' });
    await expect(page.getByRole('heading', { level: 1 })).toBeVisible();
    await expectSound(page);
  }
  await page.setViewportSize({ width: 360, height: 740 });
  await page.getByRole('button', { name: 'Open menu' }).click();
  await expect(page.getByRole('dialog')).toBeVisible();
  await expectAccessible(page);
});

test('the screens of a user are sound', async ({ page }) => {
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
  await page.goto(magic);
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
    await page.goto(path, { waitUntil: 'networkidle' });
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
