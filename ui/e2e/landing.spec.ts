import type { Locator, Page } from '@playwright/test';
import { expectAccessible } from './accessible';
import { signInAsSomeoneNew } from './sign-in';
import { expect, test } from './test';

const sections = [
  'AI-Powered Image Magic Fix',
  'AI-Powered Background Removal',
  'AI-Powered Image Upscaling',
];

/** The share of the width that shows the picture before. */
async function shareOf(slider: Locator): Promise<number> {
  return slider.evaluate((input) => {
    const layers = [...(input.parentElement?.children ?? [])].map(
      (layer) => getComputedStyle(layer).clipPath,
    );
    // "inset(0px 50% 0px 0px)": the part cut off on the right.
    const cut = layers.find((clip) => clip.startsWith('inset'))?.split(' ')[1];
    return 1 - Number.parseFloat(cut ?? '') / 100;
  });
}

async function expectPicturesLoaded(page: Page) {
  const pictures = page.getByRole('img');
  // `all` does not wait for the first one.
  await expect(pictures).not.toHaveCount(0);
  for (const picture of await pictures.all()) {
    await picture.scrollIntoViewIfNeeded();
    await expect.poll(() => picture.evaluate((it: HTMLImageElement) => it.naturalWidth)).toBeGreaterThan(0);
  }
}

test('a visitor sees examples of the tools and how to start', async ({ page }) => {
  await page.goto('/');
  await expect(page).toHaveURL(/\/dashboard$/);
  await expect(page.getByRole('heading', { name: 'AI Image Editing Made Simple' })).toBeVisible();
  await expect(page.getByRole('link', { name: 'Try for free' })).toHaveAttribute('href', '/signup');
  for (const name of sections) {
    await expect(page.getByRole('region', { name }).getByRole('link', { name: 'Try now' })).toBeVisible();
  }
  await expectPicturesLoaded(page);
  const picture = await page.getByRole('img').first().getAttribute('src');
  const { 'cache-control': caching } = (await page.request.get(picture ?? '')).headers();
  expect(caching).toContain('immutable');
  await expectAccessible(page);
  await page.getByRole('link', { name: 'Start now' }).click();
  await expect(page).toHaveURL(/\/signup$/);
});

test('the current page is underlined where contrast colors hide its color', async ({ page }) => {
  await page.setViewportSize({ width: 1440, height: 900 });
  await page.emulateMedia({ forcedColors: 'active' });
  await page.goto('/dashboard');
  const link = (name: string) => page.getByRole('banner').getByRole('link', { name, exact: true });
  await expect(link('Dashboard')).toHaveCSS('text-decoration-line', 'underline');
  await expect(link('Pricing')).toHaveCSS('text-decoration-line', 'none');
});

test('the examples work from the keyboard', async ({ page }) => {
  await page.goto('/dashboard');
  const uses = page.getByRole('tablist', { name: 'Examples of Magic Fix' });
  await uses.getByRole('tab', { name: 'Restore Images', selected: true }).focus();
  for (const name of ['Remove Details', 'Enhance Details', 'Add Details', 'Edit Details']) {
    await page.keyboard.press('ArrowRight');
    const panel = page.getByRole('tabpanel', { name });
    await expect(panel).toContainText('“');
    await expectPicturesLoaded(page);
    await expectAccessible(page);
  }
  await page.keyboard.press('Home');
  await expect(uses.getByRole('tab', { name: 'Edit Details' })).toBeFocused();

  const slider = page
    .getByRole('region', { name: 'AI-Powered Background Removal' })
    .getByRole('slider')
    .first();
  await slider.focus();
  expect(await shareOf(slider)).toBeCloseTo(0.5, 2);
  await page.keyboard.press('ArrowRight');
  expect(await shareOf(slider)).toBeGreaterThan(0.5);
  await page.keyboard.press('Home');
  expect(await shareOf(slider)).toBeCloseTo(0, 2);
});

test('a slider follows the pointer', async ({ page }) => {
  await page.goto('/dashboard');
  const slider = page.getByRole('slider').first();
  const box = await slider.boundingBox();
  if (!box) throw new Error('the slider is not visible');
  await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.8, box.y + box.height / 2, { steps: 4 });
  await page.mouse.up();
  expect(await shareOf(slider)).toBeCloseTo(0.8, 1);
});

test('pictures cause no layout shift, on a phone or a desktop', async ({ page }) => {
  for (const size of [
    { width: 360, height: 740 },
    { width: 1440, height: 900 },
  ]) {
    await page.setViewportSize(size);
    await page.goto('/dashboard');
    await page.getByRole('heading', { level: 1 }).waitFor();
    const start = await page.evaluate(() => performance.now());
    await expectPicturesLoaded(page);
    expect(await shiftSince(page, start)).toBeLessThan(0.01);
  }
});

/** The cumulative layout shift since `start`, as web vitals define it. */
async function shiftSince(page: Page, start: number): Promise<number> {
  type Shift = PerformanceEntry & { value: number; hadRecentInput: boolean };
  return page.evaluate(
    (start) =>
      new Promise<number>((resolve) => {
        let sum = 0;
        new PerformanceObserver((list) => {
          for (const { startTime, value, hadRecentInput } of list.getEntries() as Shift[]) {
            if (startTime >= start && !hadRecentInput) sum += value;
          }
        }).observe({ type: 'layout-shift', buffered: true });
        setTimeout(() => resolve(sum), 300);
      }),
    start,
  );
}

test('a user sees a link to the images instead of an invitation', async ({ page }) => {
  await signInAsSomeoneNew(page);
  await page.goto('/dashboard');
  await expect(page.getByRole('link', { name: 'Go to My Images' })).toBeVisible();
  await expect(page.getByRole('link', { name: 'Try for free' })).toHaveCount(0);
  await expectAccessible(page);
  await page.getByRole('link', { name: 'Start now' }).click();
  await expect(page).toHaveURL(/\/images$/);
});

test('a newly loaded page starts at the top, and a reload keeps the scroll position', async ({ page }) => {
  const scrollPosition = () => page.evaluate(() => Math.round(scrollY));
  await page.goto('/');
  await expect(page.getByRole('heading', { level: 1 })).toBeVisible();
  await page.evaluate(() => scrollTo(0, 600));
  await expect.poll(scrollPosition).toBe(600);
  await page.reload();
  await expect(page.getByRole('heading', { level: 1 })).toBeAttached();
  await expect.poll(scrollPosition).toBe(600);
  for (const address of ['/terms', '/pricing']) {
    await page.goto(address);
    await expect(page.getByRole('heading', { level: 1 })).toBeInViewport();
    expect(await scrollPosition(), address).toBe(0);
    await page.evaluate(() => scrollTo(0, 200));
  }
});
