import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import puppeteer from 'puppeteer-core';
import { chromium } from '../e2e/chromium.mjs';

/** The stack to measure; the same variables as in playwright.config.ts. */
export const origin = process.env.RETOUCH_URL ?? 'http://127.0.0.1:8080';

const TIMEOUT_MS = 60_000;
const photo = fileURLToPath(new URL('../../pixels/tests/photos/astronaut.jpg', import.meta.url));

export function openBrowser() {
  return puppeteer.launch({
    executablePath: chromium,
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
    ],
  });
}

/** Signs in as a new user and uploads one image. Returns the URL of a tool page for it. */
export async function openTool(page) {
  page.setDefaultTimeout(TIMEOUT_MS);
  await page.goto(`${origin}/login`);
  await page.locator('::-p-aria(Login with Username and Password)').click();
  await waitForUrl(page, (url) => !url.startsWith(origin));
  await page.locator('::-p-aria(Email)').fill(`speed-${randomUUID()}@example.com`);
  await page.locator('::-p-aria(Password)').fill(`speed-${randomUUID()}`);
  await page.locator('::-p-aria(Continue[role="button"])').click();
  await waitForUrl(page, (url) => url === `${origin}/dashboard`);
  const id = await page.evaluate(upload, readFileSync(photo, 'base64'));
  return `${origin}/remove-background/${id}`;
}

/** Runs in the signed-in page. */
async function upload(base64) {
  const [, session] = Object.entries(localStorage).find(([key]) => key.startsWith('oidc.user:'));
  const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  const form = new FormData();
  form.append('file', new Blob([bytes], { type: 'image/jpeg' }), 'photo.jpg');
  const headers = { Authorization: `Bearer ${JSON.parse(session).access_token}` };
  const answer = await fetch('/api/images/upload', { method: 'POST', headers, body: form });
  if (!answer.ok) throw new Error(`The upload failed with status ${answer.status}`);
  return (await answer.json()).id;
}

/** Polls the page's URL from outside: a navigation to another site would end a wait inside the page. */
async function waitForUrl(page, isExpected) {
  const deadline = Date.now() + TIMEOUT_MS;
  while (!isExpected(page.url())) {
    if (Date.now() > deadline)
      throw new Error(`The page is still at ${page.url()} after ${TIMEOUT_MS / 1000} s`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}
