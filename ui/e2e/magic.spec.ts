import { readFile } from 'node:fs/promises';
import { expectAccessible } from './accessible';
import { button, drawWithMouse, type Path, positionOn, prompt, strokes, surface } from './drawing';
import { aPhoto } from './photo';
import { signInAsSomeoneNew, startSignedIn } from './sign-in';
import { expect, test } from './test';
import { credits, expectResults, magicFix, openMagicFix } from './tool';

test('a new user removes an object for 8 credits and downloads the result', { tag: '@firefox' }, async ({
  page,
}) => {
  await signInAsSomeoneNew(page);
  await expect(credits(page, 20)).toBeVisible();
  await page.getByRole('link', { name: 'Magic Fix' }).first().click();
  await expect(page.getByText('No images to show')).toBeVisible();
  await page.getByLabel('Image file').setInputFiles(aPhoto());
  await button(page, 'Upload').click();
  await expect(page).toHaveURL(/\/magic\/[0-9a-f-]{36}$/);

  await drawWithMouse(page);
  // In Firefox, React does not notice Playwright's `fill`.
  await prompt(page).pressSequentially('remove the object');
  await magicFix(page).click();
  await expectResults(page, 1);
  await expect(page.getByText('“remove the object”')).toBeVisible();
  await expect(page.getByText('Removed', { exact: true })).toBeVisible();
  await expect(credits(page, 12)).toBeVisible();
  await expectAccessible(page);

  const downloading = page.waitForEvent('download');
  await button(page, 'Download').click();
  const bytes = await readFile(await (await downloading).path());
  expect({ width: bytes.readUInt32BE(16), height: bytes.readUInt32BE(20) }).toEqual({
    width: 512,
    height: 512,
  });

  await button(page, 'Compare').click();
  await expect(page.getByRole('group', { name: 'Compare as' })).toBeVisible();

  // The result and the credits survive a reload.
  await page.reload();
  await expectResults(page, 1);
  await expect(page.getByText('“remove the object”')).toBeVisible();
  await expect(credits(page, 12)).toBeVisible();
});

test('a second fix continues from the first, and Undo goes back through both', async ({ page }) => {
  const shown = () => surface(page).locator('img').first().getAttribute('src');
  await startSignedIn(page);
  await openMagicFix(page);
  const original = await shown();
  await drawWithMouse(page);
  await prompt(page).fill('remove the object');
  await magicFix(page).click();
  await expect(page.getByRole('heading', { name: 'Fixed so far' })).toBeVisible();
  await expect(button(page, 'Export mask')).toBeDisabled();
  const first = page.url();
  await page.reload();
  await expect(page.getByRole('heading', { name: 'Fixed so far' })).toBeVisible();

  await drawWithMouse(page, [
    [0.2, 0.8],
    [0.3, 0.8],
  ]);
  await magicFix(page).click();
  await expect(page).not.toHaveURL(first);
  await expectResults(page, 1);
  await expect(button(page, 'Export mask')).toBeDisabled();
  await expect(credits(page, 4)).toBeVisible();
  await expectAccessible(page);

  // The second run, its stroke, and the first run.
  for (const _ of [1, 2, 3]) await button(page, 'Undo').click();
  await expect.poll(async () => (await shown())?.split('?')[0]).toBe(original?.split('?')[0]);
  await expect(button(page, 'Export mask')).toBeEnabled();
  await expect(credits(page, 4)).toBeVisible();
});

test.describe('refusals', () => {
  test.use({ expectedRefusals: [402, 422] });

  test('a prompt that no model can follow costs nothing and is explained', async ({ page }) => {
    await startSignedIn(page);
    await openMagicFix(page);
    await drawWithMouse(page);
    await prompt(page).fill('a castle in the sky');
    await magicFix(page).click();
    await expect(prompt(page)).toHaveAttribute('aria-invalid', 'true');
    await expect(page.locator('#prompt-problem')).toHaveText(/\w+ .+\./);
    await expect(page.getByText('Failed to magic fix image')).toBeHidden();
    await expect(credits(page, 20)).toBeVisible();
    await expect(page.getByText('No images to show')).toBeVisible();
    expect(await strokes(page)).toHaveLength(1);
    await expectAccessible(page);

    // The same strokes with a prompt that works.
    await prompt(page).fill('remove the object');
    await expect(page.locator('#prompt-problem')).toBeHidden();
    await magicFix(page).click();
    await expectResults(page, 1);
    await expect(credits(page, 12)).toBeVisible();
  });

  test('after two runs there are not enough credits for a third', async ({ page }) => {
    await startSignedIn(page);
    await openMagicFix(page);
    await drawWithMouse(page);
    await prompt(page).fill('remove the object');
    for (const run of [1, 2]) {
      await magicFix(page).click();
      await expectResults(page, run);
      await expect(credits(page, 20 - run * 8)).toBeVisible();
      // Back to the picture before, with its mask.
      await button(page, 'Undo').click();
      await expect(button(page, 'Export mask')).toBeEnabled();
      await expect(magicFix(page)).toBeEnabled();
    }
    await magicFix(page).click();
    const notice = page.getByRole('alert').filter({ hasText: 'Not enough credits' });
    await expect(notice).toBeVisible();
    await notice.getByRole('link').click();
    await expect(page).toHaveURL(/\/pricing$/);
  });
});

test('a missing mask and a missing prompt are reported at their fields', async ({ page }) => {
  await startSignedIn(page);
  await openMagicFix(page);
  await magicFix(page).click();
  const editor = page.getByRole('region', { name: 'Original' });
  await expect(editor.getByText('Prompt is required')).toBeVisible();
  await expect(editor.getByText('You have to draw to select area you want to fix 1')).toBeVisible();
  await prompt(page).fill('a'.repeat(501));
  await magicFix(page).click();
  await expect(editor.getByText('Prompt is too long, maximum of 500 letters is allowed')).toBeVisible();
  await expect(credits(page, 20)).toBeVisible();
  await expectAccessible(page);
});

test("an image's page lists its fixes and deletes them", async ({ page }) => {
  await startSignedIn(page);
  await openMagicFix(page);
  await drawWithMouse(page);
  await prompt(page).fill('remove the object');
  await magicFix(page).click();
  await expectResults(page, 1);

  await page.goto(page.url().replace('/magic/', '/images/'));
  const section = page.locator('section').filter({ has: page.getByRole('heading', { name: 'Magic fixed' }) });
  await expect(section.getByRole('img', { name: 'Magic fixed, result 1' })).toBeVisible();
  await expect(section.getByText('“remove the object”')).toBeVisible();
  await section.getByRole('button', { name: 'DELETE Magic fixed, result 1' }).click();
  await page.getByRole('alertdialog').getByRole('button', { name: 'Delete', exact: true }).click();
  await expect(section.getByText('No Images to Show')).toBeVisible();
  await expect(credits(page, 12)).toBeVisible();
});

test.describe('with touch on a narrow screen', () => {
  test.use({ viewport: { width: 360, height: 740 }, hasTouch: true });

  test('one finger draws, two fingers zoom, and a run works', async ({ page, context }) => {
    await startSignedIn(page);
    await openMagicFix(page);
    const overflow = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
    expect(overflow).toBeLessThanOrEqual(0);

    const screen = await context.newCDPSession(page);
    const touch = async (type: 'touchStart' | 'touchMove' | 'touchEnd', path: Path) => {
      const touchPoints = await Promise.all(path.map(([x, y]) => positionOn(surface(page), x, y)));
      await screen.send('Input.dispatchTouchEvent', {
        type,
        touchPoints: touchPoints.map((place, id) => ({ ...place, id })),
      });
    };
    await touch('touchStart', [[0.3, 0.3]]);
    for (const step of [1, 2, 3, 4]) await touch('touchMove', [[0.3 + step * 0.05, 0.3 + step * 0.03]]);
    await touch('touchEnd', []);
    expect((await strokes(page)).map(({ kind }) => kind)).toEqual(['paint']);

    await touch('touchStart', [[0.4, 0.4]]);
    await touch('touchStart', [
      [0.4, 0.4],
      [0.6, 0.6],
    ]);
    for (const step of [1, 2, 3, 4]) {
      const spread = step * 0.04;
      await touch('touchMove', [
        [0.4 - spread, 0.4 - spread],
        [0.6 + spread, 0.6 + spread],
      ]);
    }
    await touch('touchEnd', []);
    await expect(button(page, 'Fit')).toBeEnabled();
    expect(await strokes(page)).toHaveLength(1);

    await button(page, 'Remove this').click();
    await expectAccessible(page);
    await magicFix(page).click();
    await expect(page.getByRole('heading', { name: 'Results' })).toBeInViewport();
    await expectResults(page, 1);
    await expect(page.getByText('“Remove this”')).toBeVisible();
    await expect(credits(page, 12)).toBeVisible();
  });
});

test('a visitor sees the examples and can log in', async ({ page }) => {
  await page.goto('/magic');
  await expect(page.getByRole('heading', { name: 'Magic Fix requires logging in' })).toBeVisible();
  for (const name of ['Restore Images', 'Remove Details', 'Enhance Details', 'Add Details', 'Edit Details']) {
    await page.getByRole('tab', { name }).click();
    await expect(page.getByRole('tabpanel', { name })).toBeVisible();
  }
  await expectAccessible(page);
  await page.getByRole('main').getByRole('button', { name: 'Login' }).click();
  await page.getByLabel('Email').fill(`e2e-${Date.now()}@example.com`);
  await page.getByLabel('Password').fill('e2e-password');
  await button(page, 'Continue').click();
  await expect(page).toHaveURL(/\/magic$/);
  await expect(page.getByText('No images to show')).toBeVisible();
});
