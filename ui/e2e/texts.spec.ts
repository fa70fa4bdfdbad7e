import type { Page } from '@playwright/test';
import { aPicture } from './photo';
import { signInAsSomeoneNew } from './sign-in';
import { expect, test } from './test';
import { credits, openTool } from './tool';

// The specification's numbers that only a browser's layout can show; its words are in src/testing/spec-texts.ts.

const columns = (page: Page, selector: string) =>
  page
    .locator(selector)
    .first()
    .evaluate((grid) => getComputedStyle(grid).gridTemplateColumns.split(' ').length);

test.use({ viewport: { width: 1440, height: 900 } });

test('8 columns of images, 3 in the picker, 10 of results', async ({ page }) => {
  await signInAsSomeoneNew(page);
  await openTool(page);
  const id = page.url().split('/').at(-1) ?? '';
  await page.goto('/images');
  await expect(page.getByRole('link', { name: /^Select/ })).toBeVisible();
  expect(await columns(page, 'ul:has(a:text-is("Select"))')).toBe(8);

  await page.goto('/upscale');
  await expect(page.getByRole('button', { name: /Image of/ })).toBeVisible();
  expect(await columns(page, 'ul:has(button[aria-pressed])')).toBe(3);

  // Results that nobody made: only the grid is looked at.
  await page.route(`**/api/upscale/${id}`, (route) =>
    route.fulfill({
      json: Array.from({ length: 12 }, (_, index) => ({
        imageId: `result-${index}`,
        sourceImageId: id,
        jobId: 'job',
        url: '/favicon.svg',
        thumbnailUrl: '/favicon.svg',
        width: 1024,
        height: 1024,
        sizeBytes: 1,
        createdAt: '2026-11-20T10:00:00Z',
        tier: 'paid',
        credits: 3,
        model: 'compact',
        modelSha256: 'f'.repeat(64),
        device: 'cpu',
        durationMs: 1,
        factor: 2,
        prompt: null,
        mode: null,
        demo: false,
      })),
    }),
  );
  await page.goto(`/images/${id}`);
  await expect(page.getByRole('img', { name: 'Upscaled, result 12' })).toBeVisible();
  expect(await columns(page, 'section:has(h2:text-is("Upscaled")) ul')).toBe(10);
});

test('a picture of 6001 pixels is refused before it is sent, and reported', async ({ page }) => {
  await signInAsSomeoneNew(page);
  await page.goto('/images');
  const report = page.waitForRequest((request) => request.url().includes('/api/free/upload'));
  await page.getByLabel('Image file').setInputFiles(aPicture(6001, 8));
  await expect(page.getByText('Image dimensions too big (Max 6000x6000)')).toBeVisible();
  await expect(page.getByRole('button', { name: 'Upload', exact: true })).toBeDisabled();
  const { searchParams } = new URL((await report).url());
  expect(Object.fromEntries(searchParams)).toMatchObject({ x: '6001', y: '8' });
  expect(searchParams.get('url')).toContain('/images');

  await page.getByRole('button', { name: 'Cancel' }).click();
  await page.getByLabel('Image file').setInputFiles(aPicture(6000, 8));
  await expect(page.getByRole('button', { name: 'Upload', exact: true })).toBeEnabled();
});

test('a tooltip is at most 300 pixels wide, and inside the window', async ({ page }) => {
  await signInAsSomeoneNew(page);
  await page.route('**/api/user/get', async (route) => {
    const answer = await route.fetch();
    await route.fulfill({ response: answer, json: { ...(await answer.json()), reserved: 123_456_789 } });
  });
  for (const width of [360, 1440]) {
    await page.setViewportSize({ width, height: 900 });
    await page.goto('/pricing');
    const hint = page.getByRole('tooltip');
    await expect(hint).toBeHidden();
    await credits(page, 20).hover();
    await expect(hint).toHaveText('123456789 credits held for running jobs');
    // However long its words are.
    await hint.evaluate((element) => {
      const box = element.firstElementChild ?? element;
      box.textContent = 'many words '.repeat(20);
    });
    const box = await hint.boundingBox();
    expect(box?.width).toBeLessThanOrEqual(300);
    expect(box?.x).toBeGreaterThanOrEqual(0);
    expect((box?.x ?? 0) + (box?.width ?? 0)).toBeLessThanOrEqual(width);
    await page.mouse.move(1, 500);
    await expect(hint).toBeHidden();
  }
});
