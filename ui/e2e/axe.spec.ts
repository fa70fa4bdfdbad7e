import type { Page } from '@playwright/test';
import { expectAccessible } from './accessible';
import { aPhoto } from './photo';
import { startSignedIn } from './sign-in';
import { expect, test } from './test';
import { openTool } from './tool';

// Everything that opens over a page, in both themes. screens.spec.ts covers the pages themselves.

const desktop = { width: 1440, height: 900 };
const phone = { width: 360, height: 740 };

async function expectBothThemes(page: Page) {
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
    await expectAccessible(page);
  }
}

const button = (page: Page, name: string | RegExp) => page.getByRole('button', { name });

test('menus, previews and the consent banner of a visitor', async ({ page }) => {
  await page.setViewportSize(phone);
  await page.goto('/pricing');
  await button(page, 'Open menu').click();
  await expect(page.getByRole('dialog')).toBeVisible();
  await expectBothThemes(page);
  await page.keyboard.press('Escape');

  for (const path of ['/remove-background', '/upscale']) {
    await page.goto(path);
    await page.getByLabel('Image file').setInputFiles(aPhoto());
    await expect(page.getByRole('img', { name: /^Preview/ })).toBeVisible();
    await expectBothThemes(page);
  }

  // An installation with an advertising tag.
  await page.route('**/api/config', async (route) => {
    const answer = await route.fetch();
    const site = { contactEmail: 'hello@example.com', adTag: { id: 'AW-1', conversion: 'AW-1/a' } };
    await route.fulfill({ response: answer, json: { ...(await answer.json()), site } });
  });
  await page.goto('/dashboard');
  await expect(page.getByRole('region', { name: 'May we count your sign-up?' })).toBeVisible();
  await expect(page.getByRole('link', { name: 'Contact' })).toHaveAttribute(
    'href',
    'mailto:hello@example.com',
  );
  await expectBothThemes(page);
  await button(page, 'No').click();
  await page.reload();
  await expect(button(page, 'Cookies')).toBeVisible();
  await expect(page.getByRole('region', { name: 'May we count your sign-up?' })).toBeHidden();
});

test.describe('for a user', () => {
  test.use({ viewport: desktop, expectedRefusals: [404, 500] });

  test('menus, drawers and dialogs', async ({ page }) => {
    const email = await startSignedIn(page);
    await page.goto('/dashboard');
    await button(page, email).click();
    await expect(page.getByRole('menuitem', { name: 'Logout' })).toBeVisible();
    await expectBothThemes(page);
    await page.keyboard.press('Escape');
    await expect(button(page, email)).toBeFocused();

    await page.setViewportSize(phone);
    await button(page, 'Open menu').click();
    await expect(page.getByRole('dialog')).toBeVisible();
    await expectBothThemes(page);
    await page.keyboard.press('Escape');
    await expect(button(page, 'Open menu')).toBeFocused();

    await page.setViewportSize(desktop);
    await page.goto('/account');
    await page.getByLabel('Name of a new key').fill('nightly');
    await button(page, 'Create key').click();
    await expect(page.getByLabel('Your new key “nightly”')).toBeVisible();
    await expectBothThemes(page);
    for (const opener of ['Revoke nightly', 'Delete my account']) {
      await button(page, opener).click();
      await expect(page.getByRole('alertdialog')).toBeVisible();
      await expectBothThemes(page);
      await page.keyboard.press('Escape');
      await expect(button(page, opener)).toBeFocused();
    }

    await page.goto('/images');
    await page.getByLabel('Image file').setInputFiles(aPhoto());
    await expect(page.getByRole('img', { name: /^Preview/ })).toBeVisible();
    await expectBothThemes(page);
    await openTool(page);
    const id = page.url().split('/').at(-1) ?? '';
    await page.goto(`/images/${id}`);
    await button(page, 'DELETE ALL IMAGES').click();
    await expect(page.getByRole('alertdialog')).toBeVisible();
    await expectBothThemes(page);

    await page.goto('/upscale');
    await button(page, 'astronaut.jpg').click();
    await expect(button(page, 'Select')).toBeVisible();
    await expectBothThemes(page);
  });

  test('failures, toasts, and the overlay before the payment page', async ({ page }) => {
    await startSignedIn(page);
    await page.route('**/api/checkouts/', (route) => route.fulfill({ status: 500 }));
    await page.goto('/checkouts');
    await expect(page.getByRole('alert').filter({ hasText: 'Failed to load checkouts' })).toBeVisible();
    await expectBothThemes(page);

    await page.goto('/images/01a1fccb-f6fe-70f2-a7cb-20c7a37d0121');
    await expect(page.getByRole('heading', { name: 'Failed to find your image' })).toBeVisible();
    await expectBothThemes(page);

    await page.route('**/api/payments/**', () => {});
    await page.goto('/pricing');
    await button(page, 'Choose').first().click();
    await expect(page.getByText('Taking you to the payment page…')).toBeVisible();
    await expectBothThemes(page);
  });
});
