import type { Page } from '@playwright/test';
import { firstLoad, growth, saveBaseline, total } from './first-load';
import { startSignedIn } from './sign-in';
import { expect, test } from './test';
import { expectResults, freeButton, openTool } from './tool';

const BUDGET_BYTES = 150_000;
/** Magic Fix draws with konva, and react-konva contains its own renderer. */
const EDITOR_BUDGET_BYTES = 245_000;
/** `KEEP_FIRST_LOAD=1` rewrites perf/first-load.json, the baseline that failures are compared with. */
const isUpdating = Boolean(process.env.KEEP_FIRST_LOAD);

async function expectSmall(page: Page, address: string, { name = address, draws = false } = {}) {
  const { scripts, canDraw } = await firstLoad(page, address);
  await expect(page.getByRole('heading', { level: 1 }).first()).toBeVisible();
  if (isUpdating) saveBaseline(name, scripts);
  expect(total(scripts), growth(name, scripts)).toBeLessThan(draws ? EDITOR_BUDGET_BYTES : BUDGET_BYTES);
  expect(canDraw, `${name} loads the drawing library`).toBe(draws);
}

test('every page of a visitor stays within its budget', async ({ page }) => {
  const pages = [
    '/dashboard',
    '/pricing',
    '/remove-background',
    '/upscale',
    '/magic',
    '/terms',
    '/privacy',
    '/verify',
  ];
  for (const address of [...pages, '/login', '/signup', '/authcallback', '/nothing']) {
    await expectSmall(page, address);
  }
});

test('every page of a user stays within its budget, and only the mask editor loads the drawing library', async ({
  page,
}) => {
  await startSignedIn(page);
  await openTool(page);
  await freeButton(page).click();
  await expectResults(page, 1);
  const id = new URL(page.url()).pathname.split('/').at(-1) ?? '';

  const pages = ['/dashboard', '/pricing', '/images', '/remove-background', '/upscale', '/magic'];
  for (const address of [...pages, '/checkouts', '/account', '/verify']) {
    await expectSmall(page, address, { name: `${address}, signed in` });
  }
  for (const folder of ['/images', '/remove-background', '/upscale']) {
    await expectSmall(page, `${folder}/${id}`, { name: `${folder}/{id}` });
  }
  await expectSmall(page, `/magic/${id}`, { name: '/magic/{id}', draws: true });
});
