import { expect, test } from './test';

const image = '0192f0c0-0000-7000-8000-000000000000';
const pages: [address: string, files: string[]][] = [
  ['/', ['dashboard-', 'remove-after-', 'remove-before-']],
  ['/dashboard', ['dashboard-', 'remove-after-', 'remove-before-']],
  ['/pricing', ['pricing-']],
  ['/login', ['login-']],
  ['/signup', ['signup-']],
  ['/remove-background', ['remove-background-']],
  ['/upscale', ['upscale-']],
  ['/magic', ['magic-']],
  ['/images', ['images-']],
  ['/terms', []],
  ['/checkouts', []],
  ['/nothing', []],
  [`/images/${image}`, ['image-']],
  [`/background/${image}`, ['remove-background-image-', 'tool-page-']],
  [`/remove-background/${image}`, ['remove-background-image-', 'tool-page-']],
  [`/upscale/${image}`, ['upscale-image-', 'tool-page-']],
  [`/magic/${image}`, ['magic-image-', 'tool-page-']],
];

test('a page preloads what it needs before the first script runs, and nothing of other pages', async ({
  page,
}) => {
  // Without the main script, only index.html can request anything.
  await page.route(/\/assets\/index-[^/]*\.js$/, (route) =>
    route.fulfill({ contentType: 'text/javascript', body: '' }),
  );
  for (const [address, files] of pages) {
    const requested: string[] = [];
    page.on('request', (request) => requested.push(new URL(request.url()).pathname));
    await page.goto(address, { waitUntil: 'load' });
    for (const file of files) {
      const found = requested.some((path) => path.startsWith(`/assets/${file}`));
      expect(found, `${address} requests ${file}: ${requested}`).toBe(true);
    }
    expect(requested, address).toContain('/api/config');
    const isLanding = files.includes('dashboard-');
    expect(requested.some((path) => path.startsWith('/assets/dashboard-'))).toBe(isLanding);
    page.removeAllListeners('request');
  }
});

test('the chosen theme applies before the first script runs', async ({ page }) => {
  await page.route(/\/assets\/index-[^/]*\.js$/, (route) =>
    route.fulfill({ contentType: 'text/javascript', body: '' }),
  );
  await page.goto('/pricing');
  await expect(page.locator('html')).not.toHaveAttribute('data-theme');
  await page.evaluate(() => localStorage.setItem('retouch-theme', 'dark'));
  await page.reload();
  await expect(page.locator('html')).toHaveAttribute('data-theme', 'dark');
});
