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
  [`/background/${image}`, ['remove-background-of-', 'tool-at-work-']],
  [`/remove-background/${image}`, ['remove-background-of-', 'tool-at-work-']],
  [`/upscale/${image}`, ['upscale-of-', 'tool-at-work-']],
  [`/magic/${image}`, ['magic-of-', 'tool-at-work-']],
];

test('what a page needs is asked for before the first script runs, and nothing of another page', async ({
  page,
}) => {
  // Without it, only index.html is left to ask.
  await page.route(/\/assets\/index-[^/]*\.js$/, (route) =>
    route.fulfill({ contentType: 'text/javascript', body: '' }),
  );
  for (const [address, files] of pages) {
    const asked: string[] = [];
    page.on('request', (request) => asked.push(new URL(request.url()).pathname));
    await page.goto(address, { waitUntil: 'load' });
    for (const file of files) {
      const found = asked.some((path) => path.startsWith(`/assets/${file}`));
      expect(found, `${address} asks for ${file}: ${asked}`).toBe(true);
    }
    expect(asked, address).toContain('/api/config');
    const isLanding = files.includes('dashboard-');
    expect(asked.some((path) => path.startsWith('/assets/dashboard-'))).toBe(isLanding);
    page.removeAllListeners('request');
  }
});

test('the chosen theme is there before the first script runs', async ({ page }) => {
  await page.route(/\/assets\/index-[^/]*\.js$/, (route) =>
    route.fulfill({ contentType: 'text/javascript', body: '' }),
  );
  await page.goto('/pricing');
  await expect(page.locator('html')).not.toHaveAttribute('data-theme');
  await page.evaluate(() => localStorage.setItem('retouch-theme', 'dark'));
  await page.reload();
  await expect(page.locator('html')).toHaveAttribute('data-theme', 'dark');
});
