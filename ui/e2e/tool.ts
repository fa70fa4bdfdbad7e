import { expect, type Page } from '@playwright/test';
import { aPhoto } from './photo';
import { storedToken } from './sign-in';

const action = (page: Page, name: string) => page.getByRole('button', { name, exact: true });

export const runButton = (page: Page) => action(page, 'Remove Bg AI');
export const freeButton = (page: Page) => action(page, 'Remove Bg');
export const upscale2 = (page: Page) => action(page, 'Upscale 2X');
export const upscale4 = (page: Page) => action(page, 'Upscale 4X');
export const magicFix = (page: Page) => action(page, 'Magic Fix');
export const freeUpscale = (page: Page) => action(page, 'Free Upscale');

export const credits = (page: Page, count: number) =>
  page.getByRole('link', { name: `credits ${count}`, exact: true });

/** Uploads a photo without the picker, opens the tool page, and waits until it is ready for a run. */
export async function openTool(page: Page) {
  await openWith(page, '/remove-background', aPhoto());
  await expect(runButton(page)).toBeEnabled();
}

export async function openUpscale(page: Page, file: Picture = aPhoto()) {
  await openWith(page, '/upscale', file);
  await expect(upscale4(page)).toBeEnabled();
}

export async function openMagicFix(page: Page, file: Picture = aPhoto()) {
  await openWith(page, '/magic', file);
  await expect(magicFix(page)).toBeEnabled();
}

type Picture = ReturnType<typeof aPhoto>;

async function openWith(page: Page, address: string, file: Picture) {
  const headers = { Authorization: `Bearer ${await storedToken(page)}` };
  const answer = await page.request.post('/api/images/upload', { headers, multipart: { file } });
  expect(answer.status()).toBe(201);
  const { id } = await answer.json();
  await page.goto(`${address}/${id}`);
}

/** Opens the tool with the picker. Its first click also loads what the page needs offline, such as toasts. */
export async function pickAndOpenTool(page: Page) {
  await page.goto('/remove-background');
  await page.getByLabel('Image file').setInputFiles(aPhoto());
  await page.getByRole('button', { name: 'Upload', exact: true }).click();
  await expect(page).toHaveURL(/\/remove-background\/[0-9a-f-]{36}$/);
  await expect(runButton(page)).toBeEnabled();
}

/** Opens the same page in another tab. */
export async function openAgain(page: Page): Promise<Page> {
  const other = await page.context().newPage();
  await other.goto(page.url());
  return other;
}

export async function expectResults(page: Page, count: number) {
  // The strip hides a single result.
  const results = page.getByRole('img', { name: /^Result \d/, includeHidden: true });
  await expect(results).toHaveCount(count, { timeout: 90_000 });
}
