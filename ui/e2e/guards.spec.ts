import { randomUUID } from 'node:crypto';
import type { Page } from '@playwright/test';
import { signInAsSomeoneNew, storedToken } from './sign-in';
import { expect, test } from './test';
import { credits, openTool, runButton } from './tool';

const heading = (page: Page, name: string) => page.getByRole('heading', { name, exact: true });
const storedSessions = (page: Page) =>
  page.evaluate(() => Object.keys(localStorage).filter((key) => key.startsWith('oidc.user')));
const storedValues = (page: Page) => page.evaluate(() => JSON.stringify(localStorage));
const noteOfSignIn = (page: Page) => page.evaluate(() => localStorage.getItem('retouch-sign-in'));

/** Signs in on the provider's page. The local provider identifies accounts by email. */
async function enter(page: Page, { email, password }: { email: string; password: string }) {
  await page.getByLabel('Email').fill(email);
  await page.getByLabel('Password').fill(password);
  await page.getByRole('button', { name: 'Continue' }).click();
}

test('a user signs up, logs out, and logs in again', { tag: '@firefox' }, async ({ page }) => {
  const person = { email: `e2e-${randomUUID()}@example.com`, password: `e2e-${randomUUID()}` };
  await page.goto('/signup');
  // The local provider has no other way to sign up, and those that are not set up are not shown.
  await expect(page.getByRole('button', { name: /^Continue with / })).toHaveCount(1);
  await page.getByRole('button', { name: 'Continue with Username and Password' }).click();
  await enter(page, person);
  await expect(page).toHaveURL(/\/dashboard$/);
  await expect(credits(page, 20)).toBeVisible();

  const token = await storedToken(page);
  expect(await storedValues(page)).toContain(token);
  expect(await noteOfSignIn(page)).not.toBeNull();
  await page.getByRole('button', { name: person.email }).click();
  await page.getByRole('menuitem', { name: 'Logout' }).click();
  await expect(page).toHaveURL(/\/login/);
  await expect(heading(page, 'Login')).toBeVisible();
  expect(await storedSessions(page)).toEqual([]);
  expect(await storedValues(page)).not.toContain(token);
  expect(await noteOfSignIn(page)).toBeNull();

  await page.getByRole('button', { name: 'Login with Username and Password' }).click();
  await enter(page, person);
  await expect(page).toHaveURL(/\/dashboard$/);
  await expect(page.getByRole('button', { name: person.email })).toBeVisible();
  await expect(credits(page, 20)).toBeVisible();
});

for (const path of ['/login', '/signup']) {
  test(`${path} signs out a user without asking`, async ({ page }) => {
    await signInAsSomeoneNew(page);
    await page.goto(path);
    await expect(page).toHaveURL(/\/login/);
    await expect(page.getByRole('button', { name: 'Login with Username and Password' })).toBeEnabled();
    expect(await storedSessions(page)).toEqual([]);
    await page.goto('/images');
    await expect(page).toHaveURL(/\/login$/);
  });
}

test('a sign-in returns to the requested page', async ({ page }) => {
  await page.goto('/checkouts');
  await expect(page).toHaveURL(/\/login/);
  await page.getByRole('button', { name: 'Login with Username and Password' }).click();
  await enter(page, { email: `e2e-${randomUUID()}@example.com`, password: `e2e-${randomUUID()}` });
  await expect(page).toHaveURL(/\/checkouts$/);
  await expect(credits(page, 20)).toBeVisible();
});

test('a login from Magic Fix returns there', async ({ page }) => {
  await page.goto('/magic');
  await page.getByRole('main').getByRole('button', { name: 'Login' }).click();
  await enter(page, { email: `e2e-${randomUUID()}@example.com`, password: `e2e-${randomUUID()}` });
  await expect(page).toHaveURL(/\/magic$/);
  await expect(page.getByText('No images to show')).toBeVisible();
});

test('shows only a spinner while a login finishes', async ({ page }) => {
  let answer = () => {};
  const heldBack = new Promise<void>((resolve) => {
    answer = resolve;
  });
  await page.route('**/token', async (route) => {
    await heldBack;
    await route.continue();
  });
  await page.goto('/login');
  await page.getByRole('button', { name: 'Login with Username and Password' }).click();
  await enter(page, { email: `e2e-${randomUUID()}@example.com`, password: `e2e-${randomUUID()}` });
  await expect(page).toHaveURL(/\/authcallback/);
  await expect(page.getByRole('status').filter({ hasText: 'Signing you in…' })).toBeVisible();
  await expect(heading(page, 'Login Failed')).toBeHidden();
  await expect(page.getByRole('link', { name: 'SignUp' })).toBeHidden();
  answer();
  await expect(page).toHaveURL(/\/dashboard$/);
});

for (const callback of ['/authcallback', '/authcallback-magic']) {
  test(`an unsolicited answer at ${callback} is a failed login`, async ({ page }) => {
    await page.goto(`${callback}?code=made-up&state=made-up`);
    await expect(heading(page, 'Login Failed')).toBeVisible();
    await page.getByRole('link', { name: 'Try again' }).click();
    await expect(heading(page, 'Login')).toBeVisible();
  });
}

test.describe('a session that cannot be renewed', () => {
  test.use({ expectedRefusals: [400] });

  test('ends at the login page and leaves no token', async ({ page }) => {
    await signInAsSomeoneNew(page);
    await page.goto('/images');
    await expect(page.getByText('No images to show')).toBeVisible();
    const token = await storedToken(page);
    // The token is in its last minute, and the provider refuses to renew it.
    await page.route('**/token', (route) =>
      route.fulfill({
        status: 400,
        contentType: 'application/json',
        headers: { 'Access-Control-Allow-Origin': '*' },
        body: '{"error":"invalid_grant"}',
      }),
    );
    await page.evaluate(() => {
      for (const key of Object.keys(localStorage).filter((name) => name.startsWith('oidc.user'))) {
        const user = JSON.parse(localStorage.getItem(key) ?? '{}');
        localStorage.setItem(
          key,
          JSON.stringify({ ...user, expires_at: Math.floor(Date.now() / 1000) + 40 }),
        );
      }
    });
    await page.reload();
    await expect(page.getByText('No images to show')).toBeVisible();
    await expect(page).toHaveURL(/\/login$/);
    expect(await storedValues(page)).not.toContain('_token');
    expect(await storedValues(page)).not.toContain(token);
    expect(await noteOfSignIn(page)).toBeNull();
  });
});

test('the other paths of Remove Background work too', async ({ page }) => {
  await page.goto('/background');
  await expect(heading(page, 'Remove Background')).toBeVisible();
  await expect(page.getByRole('button', { name: 'Choose a file' })).toBeVisible();
  await signInAsSomeoneNew(page);
  await openTool(page);
  await page.goto(page.url().replace('/remove-background/', '/background/'));
  await expect(runButton(page)).toBeEnabled();
  await page.goto('/background');
  await page.getByRole('button', { name: 'astronaut.jpg' }).click();
  await page.getByRole('button', { name: 'Select', exact: true }).click();
  await expect(page).toHaveURL(/\/remove-background\/[0-9a-f-]{36}$/);
});
