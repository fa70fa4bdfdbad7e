import { randomUUID } from 'node:crypto';
import { expect, type Page } from '@playwright/test';

/** Signs in as a new user on the provider's page; the local provider creates unknown accounts. */
export async function signInAsSomeoneNew(page: Page): Promise<string> {
  const email = `e2e-${randomUUID()}@example.com`;
  await page.goto('/login');
  await page.getByRole('button', { name: 'Login with Username and Password' }).click();
  await page.getByLabel('Email').fill(email);
  await page.getByLabel('Password').fill(`e2e-${randomUUID()}`);
  await page.getByRole('button', { name: 'Continue' }).click();
  await expect(page).toHaveURL(/\/dashboard$/);
  return email;
}
