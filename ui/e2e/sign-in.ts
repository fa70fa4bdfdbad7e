import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { expect, type Page } from '@playwright/test';

const someoneNew = () => ({ email: `e2e-${randomUUID()}@example.com`, password: `e2e-${randomUUID()}` });

/** Signs in as a new user on the provider's page; the local provider creates unknown accounts. */
export async function signInAsSomeoneNew(page: Page): Promise<string> {
  const { email, password } = someoneNew();
  await page.goto('/login');
  await page.getByRole('button', { name: 'Login with Username and Password' }).click();
  await page.getByLabel('Email').fill(email);
  await page.getByLabel('Password').fill(password);
  await page.getByRole('button', { name: 'Continue' }).click();
  await expect(page).toHaveURL(/\/dashboard$/);
  return email;
}

/**
 * Signs in as a new user without the three pages of a sign-in, and stores the session as the page would, for tests of
 * something else. They open their first page themselves.
 */
export async function startSignedIn(page: Page): Promise<string> {
  const person = someoneNew();
  // Belongs to the page's origin, and runs no script.
  await page.goto('/favicon.svg');
  const { identity } = await (await page.request.get('/api/config')).json();
  const { issuer, clientId: client_id, scope } = identity;
  const redirect_uri = new URL('/authcallback', page.url()).href;
  const code_verifier = randomBytes(32).toString('base64url');
  const question = new URLSearchParams({
    client_id,
    redirect_uri,
    response_type: 'code',
    scope,
    code_challenge: createHash('sha256').update(code_verifier).digest('base64url'),
    code_challenge_method: 'S256',
  });
  // Redirects lead to the form, and from there to the page with a code.
  const form = await page.request.get(`${issuer}/auth?${question}`);
  const back = await page.request.post(form.url(), { form: person });
  const code = new URL(back.url()).searchParams.get('code') ?? '';
  const answer = await page.request.post(`${issuer}/token`, {
    form: { grant_type: 'authorization_code', client_id, redirect_uri, code, code_verifier },
  });
  expect(answer.ok()).toBe(true);
  const { expires_in, ...tokens } = await answer.json();
  const profile = JSON.parse(Buffer.from(tokens.id_token.split('.')[1], 'base64url').toString());
  const user = { ...tokens, profile, expires_at: Math.floor(Date.now() / 1000) + expires_in };
  await page.evaluate(([key, user]) => localStorage.setItem(key, user), [
    `oidc.user:${issuer}:${client_id}`,
    JSON.stringify(user),
  ] as const);
  return person.email;
}

export const storedToken = (page: Page) =>
  page.evaluate(() => {
    const key = Object.keys(localStorage).find((name) => name.startsWith('oidc.user')) ?? '';
    return String(JSON.parse(localStorage.getItem(key) ?? '{}').access_token);
  });
