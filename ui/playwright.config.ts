import { fileURLToPath } from 'node:url';
import { defineConfig } from '@playwright/test';
import { chromium } from './e2e/chromium.mjs';

// Tests a running stack: run `scripts/up` first, or set RETOUCH_URL.
export default defineConfig({
  testDir: 'e2e',
  // Every test has an account or a picture of its own, and waits for a third of its time.
  workers: 2,
  // The longest takes 50 s on two quick cores, and slow ones need three times as long.
  timeout: 300_000,
  expect: { timeout: 60_000 },
  forbidOnly: Boolean(process.env.CI),
  reporter: 'list',
  use: {
    baseURL: process.env.RETOUCH_URL ?? 'http://127.0.0.1:8080',
    // Tracing takes a fifth of the time. To look into a failure: `playwright test --trace=retain-on-failure`.
    screenshot: 'only-on-failure',
  },
  projects: [
    {
      name: 'chromium',
      use: {
        launchOptions: {
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
        },
      },
    },
    {
      name: 'firefox',
      grep: /@firefox/,
      use: {
        browserName: 'firefox',
        // Drives the installed Firefox, not the build that Playwright would download.
        channel: 'moz-firefox',
        launchOptions: { executablePath: fileURLToPath(new URL('e2e/firefox.mjs', import.meta.url)) },
      },
    },
  ],
});
