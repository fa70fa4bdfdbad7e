import { randomUUID } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import puppeteer from 'puppeteer-core';

/** The stack that is measured; the same variables as in playwright.config.ts. */
export const origin = process.env.RETOUCH_URL ?? 'http://127.0.0.1:8080';

const PATIENCE_MS = 30_000;
const photo = fileURLToPath(new URL('../../worker/tests/photos/astronaut.jpg', import.meta.url));

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
  await page.goto(`${origin}/login`);
  await page.locator('::-p-aria(Login with Username and Password)').click();
  await arrive(page, (address) => !address.startsWith(origin));
  await page.locator('::-p-aria(Email)').fill(`speed-${randomUUID()}@example.com`);
  await page.locator('::-p-aria(Password)').fill(`speed-${randomUUID()}`);
  await page.locator('::-p-aria(Continue[role="button"])').click();
  await arrive(page, (address) => address === `${origin}/dashboard`);
  await page.goto(`${origin}/remove-background`);
  const field = await page.waitForSelector('input[type=file]');
  await field.uploadFile(photo);
  await page.locator('::-p-aria(Upload[role="button"])').click();
  await arrive(page, (address) => /\/remove-background\/[0-9a-f-]{36}$/.test(address));
  return page.url();
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
