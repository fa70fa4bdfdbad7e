import { aPhoto } from './photo';
import { signInAsSomeoneNew, startSignedIn } from './sign-in';
import { expect, test } from './test';
import { credits, expectResults, openTool, pickAndOpenTool, runButton } from './tool';

test('a run fails offline with a message, and works when the network is back', async ({ page, context }) => {
  await startSignedIn(page);
  await pickAndOpenTool(page);
  await context.setOffline(true);
  await expect(page.getByText('You are offline')).toBeVisible();
  await runButton(page).click();
  await expect(page.getByText('The connection was lost. Please try again.')).toBeVisible();
  await expect(page.getByText('Failed to remove image background')).toBeVisible();

  await context.setOffline(false);
  await expect(page.getByText('You are offline')).toBeHidden();
  await runButton(page).click();
  await expectResults(page, 1);
  await expect(credits(page, 15)).toBeVisible();
});

test('a run continues while the browser is offline', async ({ page, context }) => {
  await startSignedIn(page);
  await pickAndOpenTool(page);
  await runButton(page).click();
  await expect(page.getByRole('progressbar')).toBeVisible();
  await context.setOffline(true);
  await expect(page.getByText('You are offline')).toBeVisible();
  await page.waitForTimeout(3_000);
  await context.setOffline(false);
  await expectResults(page, 1);
  await expect(credits(page, 15)).toBeVisible();
});

test('a slow upload shows its progress and can be canceled', async ({ page, context }) => {
  await startSignedIn(page);
  await page.goto('/images');
  await page.getByLabel('Image file').setInputFiles(aPhoto());
  const network = await context.newCDPSession(page);
  await network.send('Network.emulateNetworkConditions', {
    offline: false,
    latency: 400,
    downloadThroughput: 50_000,
    uploadThroughput: 12_000,
  });
  await page.getByRole('button', { name: 'Upload', exact: true }).click();
  await expect(page.getByRole('progressbar', { name: 'Upload' })).toBeVisible();
  await expect(page.getByRole('button', { name: 'Upload', exact: true })).toBeDisabled();
  await page.getByRole('button', { name: 'Cancel' }).click();
  await expect(page.getByRole('button', { name: 'Choose files' })).toBeVisible();
  await expect(page.getByText('No images to show')).toBeVisible();
});

test('Back and Forward move through the pages, never through the sign-in', async ({ page }) => {
  await signInAsSomeoneNew(page);
  await openTool(page);
  const tool = page.url();
  await page.getByRole('link', { name: 'My Images' }).first().click();
  await page.getByRole('link', { name: /^Select/ }).click();
  await expect(page).toHaveURL(/\/images\/[0-9a-f-]{36}$/);
  await page.goBack();
  await expect(page.getByRole('heading', { name: 'My Images' })).toBeVisible();
  await page.goBack();
  await expect(page).toHaveURL(tool);
  await expect(runButton(page)).toBeEnabled();
  await page.goForward();
  await expect(page.getByRole('heading', { name: 'My Images' })).toBeVisible();
});

test('on a phone without a network, the tools of a selection stay in sight', async ({ page, context }) => {
  await page.setViewportSize({ width: 320, height: 568 });
  await startSignedIn(page);
  await openTool(page);
  await page.goto('/images');
  await page.getByRole('checkbox').first().check();
  await context.setOffline(true);
  await expect(page.getByText('You are offline')).toBeVisible();
  // Nothing covers it.
  await page.getByRole('button', { name: 'Delete' }).click({ trial: true });
});
