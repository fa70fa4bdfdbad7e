import { aPicture } from './photo';
import { startSignedIn } from './sign-in';
import { expect, test } from './test';
import { credits } from './tool';

// Numbers of the specification that need a real browser. src/testing/spec-texts.ts covers the texts.

test.use({ viewport: { width: 1440, height: 900 } });

test('an image of 6001 pixels is rejected before upload, and reported', async ({ page }) => {
  await startSignedIn(page);
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
  await startSignedIn(page);
  await page.route('**/api/user/get', async (route) => {
    const answer = await route.fetch();
    await route.fulfill({ response: answer, json: { ...(await answer.json()), reserved: 123_456_789 } });
  });
  // The account's stream would tell the true number.
  await page.route('**/api/events', (route) =>
    route.fulfill({ contentType: 'text/event-stream', body: ':\n\n' }),
  );
  for (const width of [360, 1440]) {
    await page.setViewportSize({ width, height: 900 });
    await page.goto('/pricing');
    const hint = page.getByRole('tooltip');
    await expect(hint).toBeHidden();
    await credits(page, 20).hover();
    await expect(hint).toHaveText('123456789 credits held for runs in progress');
    // Even with a long text.
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
