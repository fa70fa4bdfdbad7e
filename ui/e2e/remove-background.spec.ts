import { expectAccessible } from './accessible';
import { aPhoto, expectCutOut } from './photo';
import { signInAsSomeoneNew } from './sign-in';
import { expect, test } from './test';
import { credits, expectResults, freeButton, openAgain, openTool, runButton } from './tool';

test('a new user removes a background for 5 credits and downloads the result', async ({ page }) => {
  await signInAsSomeoneNew(page);
  await expect(credits(page, 20)).toBeVisible();

  await page.getByRole('link', { name: 'Remove Background' }).first().click();
  await expect(page.getByText('No images to show')).toBeVisible();
  await page.getByLabel('Image file').setInputFiles(aPhoto());
  await page.getByRole('button', { name: 'Upload', exact: true }).click();

  await expect(page).toHaveURL(/\/remove-background\/[0-9a-f-]{36}$/);
  await runButton(page).click();
  await expect(page.getByRole('progressbar')).toBeVisible();
  await expectResults(page, 1);
  await expect(credits(page, 15)).toBeVisible();
  await expectAccessible(page);

  const downloading = page.waitForEvent('download');
  await page.getByRole('button', { name: 'Download' }).click();
  await expectCutOut(page, await downloading);

  // What was made is still there after a reload, and the credits too.
  await page.reload();
  await expectResults(page, 1);
  await expect(credits(page, 15)).toBeVisible();
});

test('a reload in the middle of a run picks it up again', async ({ page }) => {
  await signInAsSomeoneNew(page);
  await openTool(page);
  await runButton(page).click();
  await expect(page.getByText('Working on your image')).toBeVisible();
  await page.reload();
  await expect(page.getByRole('progressbar')).toBeVisible();
  await expect(runButton(page)).toBeDisabled();
  await expectResults(page, 1);
  await expect(credits(page, 15)).toBeVisible();
});

test('a cancelled run costs nothing, and the next one works', async ({ page }) => {
  await signInAsSomeoneNew(page);
  await openTool(page);
  await runButton(page).click();
  await page.getByRole('button', { name: 'Cancel' }).click();
  await expect(page.getByRole('progressbar')).toBeHidden();
  await expect(page.getByText('No images to show')).toBeVisible();
  await expect(credits(page, 20)).toBeVisible();
  await runButton(page).click();
  await expectResults(page, 1);
  await expect(credits(page, 15)).toBeVisible();
});

test('on a narrow screen a run brings the place of its result into sight', async ({ page }) => {
  await page.setViewportSize({ width: 360, height: 740 });
  await signInAsSomeoneNew(page);
  await openTool(page);
  await freeButton(page).click();
  await expect(page.getByRole('heading', { name: 'Results' })).toBeInViewport();
  await expectResults(page, 1);
  await expect(page.getByRole('button', { name: 'Download' })).toBeInViewport();
});

test('a double click starts one run', async ({ page }) => {
  await signInAsSomeoneNew(page);
  await openTool(page);
  await runButton(page).dblclick();
  await expectResults(page, 1);
  await page.reload();
  await expectResults(page, 1);
  await expect(credits(page, 15)).toBeVisible();
});

test.describe('refusals', () => {
  test.use({ expectedRefusals: [402, 409] });

  test('a second free run of an image is refused', async ({ page }) => {
    await signInAsSomeoneNew(page);
    await openTool(page);
    // The second page does not know of the first one's run.
    const other = await openAgain(page);
    await expect(freeButton(other)).toBeEnabled();

    await freeButton(page).click();
    await expectResults(page, 1);
    await expect(page.getByText('Free run used for this image')).toBeVisible();
    await expect(freeButton(page)).toBeDisabled();

    await freeButton(other).click();
    await expect(other.getByText('Free background remove image already created')).toBeVisible();
    await expect(freeButton(other)).toBeDisabled();
    await expect(credits(other, 20)).toBeVisible();
  });

  test('after four runs the credits are used up', async ({ page }) => {
    await signInAsSomeoneNew(page);
    await openTool(page);
    for (const run of [1, 2, 3, 4]) {
      await runButton(page).click();
      await expectResults(page, run);
      await expect(credits(page, 20 - run * 5)).toBeVisible();
      await expect(runButton(page)).toBeEnabled();
    }
    await runButton(page).click();
    const notice = page.getByRole('alert').filter({ hasText: 'Not enough credits' });
    await expect(notice).toBeVisible();
    await expectAccessible(page);
    await notice.getByRole('link').click();
    await expect(page).toHaveURL(/\/pricing$/);
  });
});
