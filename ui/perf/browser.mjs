import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import puppeteer from 'puppeteer-core';

/** The stack that is measured; the same variables as in playwright.config.ts. */
export const origin = process.env.RETOUCH_URL ?? 'http://127.0.0.1:8080';

const PATIENCE_MS = 60_000;
const photo = fileURLToPath(new URL('../../pixels/tests/photos/astronaut.jpg', import.meta.url));

export function openBrowser() {
  return puppeteer.launch({
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
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

/** A new person with one picture, through the provider's own page. Returns the address of a tool with that picture. */
export async function openTool(page) {
  page.setDefaultTimeout(PATIENCE_MS);
  await page.goto(`${origin}/login`);
  await page.locator('::-p-aria(Login with Username and Password)').click();
  await arrive(page, (address) => !address.startsWith(origin));
  await page.locator('::-p-aria(Email)').fill(`speed-${randomUUID()}@example.com`);
  await page.locator('::-p-aria(Password)').fill(`speed-${randomUUID()}`);
  await page.locator('::-p-aria(Continue[role="button"])').click();
  await arrive(page, (address) => address === `${origin}/dashboard`);
  const id = await page.evaluate(upload, readFileSync(photo, 'base64'));
  return `${origin}/remove-background/${id}`;
}

/** Runs in the page, which is signed in. */
async function upload(base64) {
  const [, kept] = Object.entries(sessionStorage).find(([key]) => key.startsWith('oidc.user:'));
  const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
  const form = new FormData();
  form.append('file', new Blob([bytes], { type: 'image/jpeg' }), 'photo.jpg');
  const headers = { Authorization: `Bearer ${JSON.parse(kept).access_token}` };
  const answer = await fetch('/api/images/upload', { method: 'POST', headers, body: form });
  if (!answer.ok) throw new Error(`The upload was answered with ${answer.status}`);
  return (await answer.json()).id;
}

/** Waits for an address; asked from outside, because each site has a frame of its own and takes with it what waits inside. */
async function arrive(page, isThere) {
  const deadline = Date.now() + PATIENCE_MS;
  while (!isThere(page.url())) {
    if (Date.now() > deadline)
      throw new Error(`Waited ${PATIENCE_MS / 1000} s, and the page is still ${page.url()}`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}
