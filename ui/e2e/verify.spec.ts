import { readFile } from 'node:fs/promises';
import type { Page } from '@playwright/test';
import { expectAccessible } from './accessible';
import { checkScreen } from './check-screen';
import { drawWithMouse, prompt } from './drawing';
import { aPhoto } from './photo';
import { startSignedIn } from './sign-in';
import { expect, test } from './test';
import { expectResults, freeButton, magicFix, openMagicFix } from './tool';

const verdict = (page: Page, title: string) => page.getByRole('heading', { level: 2, name: title });
const ours = 'Valid, signed by this server';
/** The built-in fill of Magic Fix is not AI. */
const source = 'Software made parts of this picture';

async function verify(page: Page, name: string, buffer: Buffer) {
  const mimeType = name.endsWith('.jpg') ? 'image/jpeg' : name.endsWith('.webp') ? 'image/webp' : 'image/png';
  await page.getByLabel('Image file').setInputFiles({ name, mimeType, buffer });
  await expect(page.getByText(name, { exact: true })).toBeVisible();
  await expect(page.getByText('Reading the picture…')).toBeHidden();
}

async function download(page: Page, format: string): Promise<Buffer> {
  await page.getByLabel('Format').selectOption(format);
  const downloading = page.waitForEvent('download');
  await page.getByRole('button', { name: 'Download' }).click({ timeout: 90_000 });
  return readFile(await (await downloading).path());
}

/** Returns a PNG without the chunks of these names. */
function withoutChunks(png: Buffer, names: string[]): Buffer {
  const kept = [png.subarray(0, 8)];
  for (let at = 8; at < png.length; ) {
    const end = at + 12 + png.readUInt32BE(at);
    if (!names.includes(png.toString('latin1', at + 4, at + 8))) kept.push(png.subarray(at, end));
    at = end;
  }
  return Buffer.concat(kept);
}

test('a result says how it was made in every format, and copies that were changed do not', async ({
  page,
  browser,
  baseURL,
}) => {
  await startSignedIn(page);
  await openMagicFix(page);
  await drawWithMouse(page);
  await prompt(page).fill('remove the object');
  await magicFix(page).click();
  await expectResults(page, 1);
  await expect(page.getByText('This file says that a program made parts of the picture.')).toBeVisible();
  const png = await download(page, 'png');
  const webp = await download(page, 'webp');
  await page.getByRole('link', { name: 'See what it says' }).click();
  await expect(verdict(page, ours)).toBeVisible();
  await expect(page.getByText(source).first()).toBeVisible();
  await expect(page.getByText('The signed credentials say so.')).toBeVisible();
  await expect(page.getByText('Edited: Removed an object')).toBeVisible();
  await expect(page.getByText('Uploaded picture')).toBeVisible();
  await checkScreen(page);

  await verify(page, 'saved.webp', webp);
  await expect(verdict(page, ours)).toBeVisible();
  // The result is the parent of the file, with its own manifest.
  await expect(page.getByText('Edited: Removed an object')).toBeVisible();

  const tampered = Buffer.from(png);
  tampered[png.length - 40] = (tampered[png.length - 40] ?? 0) ^ 1;
  await verify(page, 'tampered.png', tampered);
  await expect(verdict(page, 'These Content Credentials are not valid')).toBeVisible();
  await expect(page.getByText('assertion.dataHash.mismatch')).toBeVisible();
  await expectAccessible(page);

  await verify(page, 'unsigned.png', withoutChunks(png, ['caBX']));
  await expect(verdict(page, 'No Content Credentials')).toBeVisible();
  await expect(page.getByText(/^Only the file’s XMP metadata says so/)).toBeVisible();

  await verify(page, 'stripped.png', withoutChunks(png, ['caBX', 'iTXt']));
  await expect(verdict(page, 'No Content Credentials')).toBeVisible();
  await expect(page.getByText('Where the picture comes from')).toBeHidden();

  // Somebody without an account cuts out the marked picture and saves the result as a JPG.
  const visitor = await browser.newContext({ baseURL });
  const other = await visitor.newPage();
  await other.goto('/remove-background');
  await other.getByLabel('Image file').setInputFiles({ name: 'a.png', mimeType: 'image/png', buffer: png });
  await freeButton(other).click();
  const jpg = await download(other, 'jpg');
  expect(jpg.subarray(0, 3).toString('hex')).toBe('ffd8ff');
  await other.getByRole('contentinfo').getByRole('link', { name: 'Verify a picture' }).click();
  await verify(other, 'saved.jpg', jpg);
  await expect(verdict(other, ours)).toBeVisible();
  await expect(other.getByText(source).first()).toBeVisible();
  await visitor.close();
});

test.describe('refusals', () => {
  test.use({ expectedRefusals: [415] });

  test('a visitor verifies a picture without an account, and is told what cannot be read', async ({
    page,
  }) => {
    await page.goto('/verify');
    await verify(page, 'photo.jpg', aPhoto().buffer);
    await expect(verdict(page, 'No Content Credentials')).toBeVisible();
    await verify(page, 'letter.png', Buffer.from('Dear Ada'));
    await expect(page.getByRole('alert')).toContainText("We can't read this file as an image");
    await expect(page.getByText('This browser cannot show the picture.')).toBeVisible();
    await expectAccessible(page);
  });
});
