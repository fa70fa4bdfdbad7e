import type { Locator } from '@playwright/test';
import { expectAccessible } from './accessible';
import { checkScreen } from './check-screen';
import { button, drawWithMouse, prompt } from './drawing';
import { aPhoto } from './photo';
import { openSettled } from './settled';
import { startSignedIn } from './sign-in';
import { folder, snapshot } from './snapshot';
import { expect, test } from './test';
import { expectResults, freeButton, freeUpscale, magicFix, openTool, upscale2 } from './tool';

const everyone = [
  '/dashboard',
  '/pricing',
  '/remove-background',
  '/upscale',
  '/magic',
  '/terms',
  '/privacy',
  '/verify',
  '/nothing',
];

async function boxOf(element: Locator) {
  const box = await element.boundingBox();
  if (!box) throw new Error(`${element} is not visible`);
  return { ...box, right: box.x + box.width, bottom: box.y + box.height };
}

test('the screens of a visitor have no overflow and are accessible', async ({ page }) => {
  test.slow();
  for (const path of [...everyone, '/login', '/signup', '/authcallback']) {
    await openSettled(page, path);
    await expect(page.getByRole('heading', { level: 1 })).toBeVisible();
    await checkScreen(page);
  }
  await page.setViewportSize({ width: 360, height: 740 });
  await page.getByRole('button', { name: 'Open menu' }).click();
  await expect(page.getByRole('dialog')).toBeVisible();
  await expectAccessible(page);
});

test('the screens of a user have no overflow and are accessible', async ({ page }) => {
  // Every screen in three widths and two themes: more than a minute on two busy cores.
  test.slow();
  await startSignedIn(page);
  await openTool(page);
  const tool = new URL(page.url()).pathname;
  await freeButton(page).click();
  await expectResults(page, 1);
  await page.getByRole('button', { name: 'Compare' }).click();
  await expect(page.getByRole('group', { name: 'Compare as' })).toBeVisible();
  await checkScreen(page);

  const upscale = tool.replace('remove-background', 'upscale');
  await page.goto(upscale);
  await freeUpscale(page).click();
  await expectResults(page, 1);
  await page.getByRole('button', { name: 'Compare' }).click();
  await expect(page.getByRole('group', { name: 'Compare as' })).toBeVisible();
  await checkScreen(page);

  // On a phone, the zoom bar has a row of its own, or leaves room for the badge.
  await page.setViewportSize({ width: 360, height: 780 });
  const badge = await boxOf(page.getByRole('figure').getByText('2X', { exact: true }));
  const bar = await boxOf(page.getByRole('group', { name: 'Zoom' }));
  const isApart = badge.right <= bar.x || badge.y >= bar.bottom || badge.bottom <= bar.y;
  expect(isApart, JSON.stringify({ badge, bar })).toBe(true);

  const magic = tool.replace('remove-background', 'magic');
  await page.goto(magic);
  await expect(page.getByRole('application', { name: 'Image to draw on' })).toBeVisible();
  await checkScreen(page);

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
    '/verify',
  ]) {
    await openSettled(page, path);
    await expect(page.getByRole('heading', { level: 1 })).toBeVisible();
    await checkScreen(page);
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
  await page.getByRole('alertdialog').getByRole('button', { name: 'Delete all' }).click();
  await expect(page).toHaveURL(/\/images$/);
  await expect(page.getByText('No images to show')).toBeVisible();
  const heading = await boxOf(page.getByRole('heading', { name: 'Your images' }));
  const empty = await boxOf(page.getByText('No images to show').locator('..'));
  expect(empty.y - heading.bottom).toBeGreaterThanOrEqual(12);
});

test.describe('pictures of the main screens', () => {
  // `RETOUCH_SCREENS=../docs/screens npx playwright test screens -g pictures`, for people to review.
  test.skip(!folder, 'on demand only');

  test('of a visitor', async ({ page }) => {
    for (const [name, path] of [
      ['landing', '/dashboard'],
      ['pricing', '/pricing'],
      ['login', '/login'],
      ['magic-fix-visitor', '/magic'],
      ['terms', '/terms'],
      ['verify', '/verify'],
    ] as const) {
      await openSettled(page, path);
      await snapshot(page, name);
    }
    await page.goto('/remove-background');
    await page.getByLabel('Image file').setInputFiles(aPhoto());
    await expect(page.getByRole('img', { name: /^Preview/ })).toBeVisible();
    await snapshot(page, 'free-tool');
  });

  test('of a user', async ({ page }) => {
    await startSignedIn(page);
    await page.goto('/images');
    await expect(page.getByText('No images to show')).toBeVisible();
    await snapshot(page, 'images-empty', ['phone', 'desk']);
    await openTool(page);
    const tool = page.url();
    await freeButton(page).click();
    await expectResults(page, 1);
    await snapshot(page, 'remove-background');

    await page.goto(tool.replace('remove-background', 'upscale'));
    await upscale2(page).click();
    await expect(page.getByRole('progressbar')).toBeVisible();
    await snapshot(page, 'upscale-running', ['phone']);
    await expectResults(page, 1);
    await page.getByRole('button', { name: 'Compare' }).click();
    await expect(page.getByRole('group', { name: 'Compare as' })).toBeVisible();
    await snapshot(page, 'upscale');

    await page.goto(tool.replace('remove-background', 'magic'));
    await page.setViewportSize({ width: 1440, height: 900 });
    await drawWithMouse(page);
    await prompt(page).fill('remove the object');
    await magicFix(page).click();
    await expectResults(page, 1);
    await snapshot(page, 'magic-fix');

    await page.goto(tool.replace('remove-background', 'images'));
    await expect(page.getByRole('img', { name: 'Upscaled, result 1' })).toBeVisible();
    await snapshot(page, 'image');
    await page.goto('/images');
    await expect(page.getByRole('link', { name: /^Select/ })).toBeVisible();
    await snapshot(page, 'images', ['phone', 'desk']);
    await page.goto('/upscale');
    await page.getByRole('button', { name: 'astronaut.jpg' }).click();
    await snapshot(page, 'picker', ['phone', 'desk']);

    await page.goto('/pricing');
    await button(page, 'Choose').first().click();
    await page.getByRole('button', { name: /^Pay \$/ }).click();
    await expect(page.getByRole('heading', { name: 'Thank you for your order' })).toBeVisible();
    await snapshot(page, 'thanks', ['phone', 'desk']);
    await page.getByRole('link', { name: 'See the order' }).click();
    await expect(page.getByText('Customer Email')).toBeVisible();
    await snapshot(page, 'order', ['phone', 'desk']);
    await page.goto('/checkouts');
    await expect(page.getByRole('row')).toHaveCount(2);
    await snapshot(page, 'checkouts', ['phone', 'desk']);

    await page.goto('/account');
    await expect(page.getByText('No keys yet')).toBeVisible();
    await snapshot(page, 'account');
    await page.setViewportSize({ width: 360, height: 780 });
    await page.getByRole('button', { name: 'Open menu' }).click();
    await expect(page.getByRole('dialog')).toBeVisible();
    await snapshot(page, 'drawer', ['phone']);
  });
});
