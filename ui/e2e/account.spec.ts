import { readFile } from 'node:fs/promises';
import { expectAccessible } from './accessible';
import { checkScreen } from './check-screen';
import { signInAsSomeoneNew } from './sign-in';
import { expect, test } from './test';
import { credits } from './tool';

test('an API key works until it is revoked', async ({ page }) => {
  await signInAsSomeoneNew(page);
  await page.goto('/account');
  await expect(page.getByText('No keys yet')).toBeVisible();
  await page.getByLabel('Name of a new key').fill('nightly batch');
  await page.getByRole('button', { name: 'Create key' }).click();
  const field = page.getByLabel('Your new key “nightly batch”');
  await expect(field).toBeFocused();
  const key = await field.inputValue();
  await checkScreen(page);

  const call = () => page.request.get('/api/user/get', { headers: { 'X-Api-Key': key } });
  expect(await (await call()).json()).toMatchObject({ credits: 20 });

  // The full key is shown only once.
  await page.reload();
  await expect(page.getByRole('list', { name: 'Your API keys' })).toContainText('nightly batch');
  await expect(field).toBeHidden();

  await page.getByRole('button', { name: 'Revoke nightly batch' }).click();
  const question = page.getByRole('alertdialog');
  await expect(question).toBeVisible();
  await expectAccessible(page);
  await question.getByRole('button', { name: 'Revoke' }).click();
  await expect(page.getByText('No keys yet')).toBeVisible();
  expect((await call()).status()).toBe(401);
});

test.describe('deletion', () => {
  // The first calls after the next sign-in.
  test.use({ expectedRefusals: [401] });

  test('an account is exported, deleted, and started again', async ({ page }) => {
    const email = await signInAsSomeoneNew(page);
    await page.getByRole('button', { name: email }).click();
    await page.getByRole('menuitem', { name: 'Account' }).click();
    await expect(credits(page, 20)).toBeVisible();

    const downloading = page.waitForEvent('download');
    await page.getByRole('button', { name: 'Export my data' }).click();
    const file = await (await downloading).path();
    expect(JSON.parse(await readFile(file, 'utf8'))).toMatchObject({ user: { email, credits: 20 } });

    const remove = page.getByRole('button', { name: 'Delete my account' });
    await remove.click();
    const dialog = page.getByRole('alertdialog');
    await expect(dialog).toContainText('the 20 credits you have left');
    await checkScreen(page);
    await page.keyboard.press('Escape');
    await expect(remove).toBeFocused();

    await remove.click();
    await dialog.getByRole('textbox').fill('DELETE');
    await dialog.getByRole('button', { name: 'Delete my account' }).click();
    await expect(page).toHaveURL(/\/dashboard$/);
    await expect(page.getByText('Your account was deleted')).toBeVisible();
    await expect(page.getByRole('link', { name: 'Login' }).first()).toBeVisible();
    await page.goto('/images');
    await expect(page).toHaveURL(/\/login$/);

    // Tokens name the second of their issue: a token from the second of the deletion would count as older.
    await page.waitForTimeout(1_000 - (Date.now() % 1_000));
    // The provider still knows the user.
    await page.getByRole('button', { name: 'Login with Username and Password' }).click();
    await expect(page).toHaveURL(/\/images$/);
    await expect(page.getByRole('button', { name: email })).toBeVisible();
    await expect(credits(page, 0)).toBeVisible();
  });
});
