import { expectAccessible } from './accessible';
import { aPhoto, aPicture, expectCutout } from './photo';
import { pictureOf } from './pixel';
import { signInAsSomeoneNew, startSignedIn } from './sign-in';
import { expect, test } from './test';
import { credits, expectResults, freeButton, openAgain, openTool, runButton } from './tool';

test('a new user removes a background for 5 credits and downloads the result', { tag: '@firefox' }, async ({
  page,
}) => {
  await signInAsSomeoneNew(page);
  await expect(credits(page, 20)).toBeVisible();

  await page.getByRole('link', { name: 'Remove Background' }).first().click();
  await expect(page.getByText('No images to show')).toBeVisible();
  await page.getByLabel('Image file').setInputFiles(aPhoto());
  await page.getByRole('button', { name: 'Upload', exact: true }).click();

  await expect(page).toHaveURL(/\/remove-background\/[0-9a-f-]{36}$/);
  await runButton(page).click();
  await expect(page.getByRole('progressbar')).toBeVisible();
  await expectResults(page, 1);
  await expect(credits(page, 15)).toBeVisible();
  await expectAccessible(page);

  const downloading = page.waitForEvent('download');
  await page.getByRole('button', { name: 'Download' }).click();
  await expectCutout(page, await downloading);

  // The result and the credits survive a reload.
  await page.reload();
  await expectResults(page, 1);
  await expect(credits(page, 15)).toBeVisible();
});

test('a cutout gets a color or a picture as background, in every format', async ({ page }) => {
  const wall = [330, 60] as const;
  const download = async (format: string) => {
    await page.getByRole('combobox', { name: 'Format' }).selectOption(format);
    const downloading = page.waitForEvent('download');
    await page.getByRole('button', { name: 'Download' }).click();
    const file = await downloading;
    expect(file.suggestedFilename()).toBe(`downloaded_image.${format}`);
    const picture = await pictureOf(page, file, [[...wall]]);
    expect(picture.type).toBe(format);
    expect(picture.size).toBe('512 × 512');
    return picture.at(...wall);
  };

  await startSignedIn(page);
  await openTool(page);
  await freeButton(page).click();
  await expectResults(page, 1);
  // Without a background: transparent if the format allows it, otherwise white.
  expect((await download('webp'))[3]).toBeLessThan(5);
  for (const part of await download('jpg')) expect(part).toBeGreaterThan(248);

  await page.getByRole('button', { name: 'Finish' }).click();
  await page.getByRole('radio', { name: 'Black' }).check({ force: true });
  await expectAccessible(page);
  for (const format of ['png', 'jpg', 'webp']) {
    const [red, green, blue, alpha] = await download(format);
    expect(Math.max(red ?? 255, green ?? 255, blue ?? 255), format).toBeLessThan(8);
    expect(alpha, format).toBe(255);
  }

  await page.getByLabel('Background picture').setInputFiles(aPicture(200, 100));
  await expect(page.getByRole('button', { name: 'Custom picture' })).toHaveAttribute('aria-pressed', 'true');
  const [red, green, , alpha] = await download('png');
  expect(alpha).toBe(255);
  // Red rises from left to right; covering a square, only the middle half is visible.
  expect(red).toBeGreaterThan(130);
  expect(red).toBeLessThan(200);
  expect(green).toBeLessThan(60);
});

test.describe('in a tall window', () => {
  // Larger on the screen than it is, also beside its options.
  test.use({ viewport: { width: 1440, height: 1600 } });

  test('a finished picture keeps its size, and a crop fits into its place', async ({ page }) => {
    const picture = page.getByRole('img', { name: 'Result without its background' });
    const boxOf = async () => (await picture.boundingBox()) ?? { x: 0, y: 0, width: 0, height: 0 };
    const sizeOf = async () => {
      const { width, height } = await boxOf();
      return `${Math.round(width)} × ${Math.round(height)}`;
    };
    await startSignedIn(page);
    await openTool(page);
    await freeButton(page).click();
    await expectResults(page, 1);
    await page.getByRole('button', { name: 'Finish' }).click();
    await expect(page.getByRole('region', { name: 'Finish' })).toBeVisible();
    const plain = await boxOf();
    expect(plain.width).toBeGreaterThan(512);
    const plainSize = await sizeOf();

    await page.getByRole('switch', { name: 'Shadow' }).click();
    await expect(page.locator('canvas')).toBeVisible();
    expect(await sizeOf()).toBe(plainSize);

    for (const [aspect, ratio] of [
      ['16:9', 16 / 9],
      ['3:4', 3 / 4],
    ] as const) {
      await page.getByLabel('Crop').selectOption(aspect);
      await expect.poll(async () => (await boxOf()).width / (await boxOf()).height).toBeCloseTo(ratio, 1);
      const crop = await boxOf();
      expect(Math.max(crop.width / plain.width, crop.height / plain.height)).toBeCloseTo(1, 2);
      expect(Math.abs(crop.x + crop.width / 2 - (plain.x + plain.width / 2))).toBeLessThan(1);
    }
  });
});

test('in a small window the picture stays in sight beside what finishes it', async ({ page }) => {
  await startSignedIn(page);
  await openTool(page);
  await freeButton(page).click();
  await expectResults(page, 1);
  await page.getByRole('button', { name: 'Finish' }).click();
  await page.getByRole('switch', { name: 'Shadow' }).click();
  for (const [width, height] of [
    [320, 568],
    [683, 325],
  ] as const) {
    await page.setViewportSize({ width, height });
    for (const name of ['Strength', 'Down']) {
      const slider = page.getByRole('slider', { name });
      await slider.focus();
      await expect(slider).toBeInViewport({ ratio: 1 });
      await expect(page.locator('canvas')).toBeInViewport({ ratio: 1 });
      const picture = await page.locator('canvas').boundingBox();
      const { y } = (await slider.boundingBox()) ?? { y: 0 };
      expect((picture?.y ?? 0) + (picture?.height ?? 0)).toBeLessThanOrEqual(y);
    }
  }
});

test('in a low window the tools of a touch-up stay beside the picture, and cover nothing else', async ({
  page,
}) => {
  await startSignedIn(page);
  await openTool(page);
  await freeButton(page).click();
  await expectResults(page, 1);
  await page.setViewportSize({ width: 667, height: 375 });
  await page.getByRole('button', { name: 'Finish' }).click();
  await page.getByRole('button', { name: 'Touch up the edges' }).click();
  const surface = page.getByRole('application', { name: /^Cutout to touch up/ });
  const tools = page.getByRole('group', { name: 'Touch-up tool' });
  await expect(surface).toBeFocused();
  const edgesOf = async (element: typeof surface) => {
    const { y, height } = (await element.boundingBox()) ?? { y: 0, height: 0 };
    return { top: y, bottom: y + height };
  };
  await expect(tools).toBeInViewport({ ratio: 1 });
  await expect
    .poll(async () => (await edgesOf(tools)).top - (await edgesOf(surface)).bottom)
    .toBeGreaterThan(0);
  const topBar = await edgesOf(page.getByRole('banner'));
  expect((await edgesOf(surface)).top).toBeGreaterThanOrEqual(topBar.bottom);

  const last = page.getByRole('contentinfo').getByRole('link').last();
  await last.focus();
  const isClear = await last.evaluate((element) => {
    const { x, y, width, height } = element.getBoundingClientRect();
    return element.contains(document.elementFromPoint(x + width / 2, y + height - 4));
  });
  expect(isClear).toBe(true);

  for (const [width, height] of [
    [1366, 650],
    [390, 844],
    [320, 568],
  ] as const) {
    await page.setViewportSize({ width, height });
    await surface.scrollIntoViewIfNeeded();
    await expect(tools).toBeInViewport({ ratio: 1 });
  }
  // Here they would cover too much.
  await page.setViewportSize({ width: 320, height: 400 });
  await surface.scrollIntoViewIfNeeded();
  await expect(tools).not.toBeInViewport();
});

test('a result can be zoomed with wheel, keys and buttons', async ({ page }) => {
  await startSignedIn(page);
  await openTool(page);
  await freeButton(page).click();
  await expectResults(page, 1);
  await page.getByRole('button', { name: 'Zoom', exact: true }).click();
  const frame = page.getByRole('application', { name: /enlarged/ });
  await expect(frame).toBeFocused();
  const level = async () => Number.parseInt(String(await page.getByText(/^\d+%$/).textContent()), 10);
  const first = await level();
  await frame.hover();
  await page.mouse.wheel(0, -300);
  await expect.poll(level).toBeGreaterThan(first);
  await page.keyboard.press('0');
  await expect(page.getByRole('button', { name: 'Fit' })).toBeDisabled();
  await page.getByRole('button', { name: '1:1' }).click();
  await page.getByRole('button', { name: 'Zoom in' }).click();
  const left = async () => (await frame.locator('img').first().boundingBox())?.x ?? 0;
  const before = await left();
  await frame.focus();
  await page.keyboard.press('ArrowRight');
  await expect.poll(left).toBeLessThan(before);
  await expectAccessible(page);
  await page.keyboard.press('Escape');
  await expect(frame).toBeHidden();

  await page.locator('summary', { hasText: '512 × 512 px' }).click();
  await expect(page.getByText(/^SHA-256 [0-9a-f]{64}$/)).toBeVisible();
  await expectAccessible(page);
});

// Not in Firefox: without a screen, its clipboard holds only text.
test('an image can be pasted', async ({ page, context }) => {
  await context.grantPermissions(['clipboard-write']);
  await startSignedIn(page);
  await page.goto('/remove-background');
  await expect(page.getByRole('button', { name: 'Choose files' })).toBeVisible();
  // Browsers copy only PNG.
  const { buffer } = aPicture(200, 120);
  await page.evaluate(async (base64) => {
    const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
    const picture = new Blob([bytes], { type: 'image/png' });
    await navigator.clipboard.write([new ClipboardItem({ 'image/png': picture })]);
  }, buffer.toString('base64'));
  await page.keyboard.press('Control+v');
  await expect(page.getByRole('img', { name: 'Preview of image.png' })).toBeVisible();
  await page.getByRole('button', { name: 'Upload', exact: true }).click();
  await expect(page).toHaveURL(/\/remove-background\/[0-9a-f-]{36}$/);
});

test('the grids have three, eight and ten columns', async ({ page }) => {
  const columns = (list: ReturnType<typeof page.getByRole>) =>
    list.evaluate((element) => getComputedStyle(element).gridTemplateColumns.split(' ').length);
  await page.setViewportSize({ width: 1440, height: 900 });
  await startSignedIn(page);
  await openTool(page);
  const tool = page.url();
  await freeButton(page).click();
  await expectResults(page, 1);
  await page.goto('/remove-background');
  const picker = page.getByRole('region', { name: 'Your images' }).getByRole('list');
  expect(await columns(picker)).toBe(3);
  await page.goto('/images');
  expect(await columns(page.getByRole('list', { name: 'Your images' }))).toBe(8);
  await page.goto(tool.replace('remove-background', 'images'));
  const result = page.getByRole('img', { name: 'Background removed, result 1' });
  expect(await columns(page.getByRole('list').filter({ has: result }))).toBe(10);
});

test('a reload during a run continues to follow it', async ({ page }) => {
  await startSignedIn(page);
  await openTool(page);
  await runButton(page).click();
  await expect(page.getByText('Working on your image')).toBeVisible();
  await page.reload();
  await expect(page.getByRole('progressbar')).toBeVisible();
  await expect(runButton(page)).toBeDisabled();
  await expectResults(page, 1);
  await expect(credits(page, 15)).toBeVisible();
});

test('a canceled run costs nothing, and the next one works', async ({ page }) => {
  await startSignedIn(page);
  await openTool(page);
  await runButton(page).click();
  await page.getByRole('button', { name: 'Cancel' }).click();
  await expect(page.getByRole('progressbar')).toBeHidden();
  await expect(page.getByText('No images to show')).toBeVisible();
  await expect(credits(page, 20)).toBeVisible();
  await runButton(page).click();
  await expectResults(page, 1);
  await expect(credits(page, 15)).toBeVisible();
});

test('on a narrow screen a run scrolls to the results', async ({ page }) => {
  await page.setViewportSize({ width: 360, height: 740 });
  await startSignedIn(page);
  await openTool(page);
  await freeButton(page).click();
  await expect(page.getByRole('heading', { name: 'Results' })).toBeInViewport();
  await expectResults(page, 1);
  await expect(page.getByRole('button', { name: 'Download' })).toBeInViewport();
});

test('a picture and its download fit into the window of a laptop', async ({ page }) => {
  await startSignedIn(page);
  await openTool(page);
  const download = page.getByRole('button', { name: 'Download' });
  const expectDownloadInSight = async () => {
    for (const [width, height] of [
      [1366, 650],
      [1280, 600],
      [1440, 900],
    ] as const) {
      await page.setViewportSize({ width, height });
      await expect(download).toBeInViewport({ ratio: 1 });
    }
  };
  await freeButton(page).click();
  await expectResults(page, 1);
  await expectDownloadInSight();
  await runButton(page).click();
  await expectResults(page, 2);
  await expectDownloadInSight();
});

test('a double click starts one run', async ({ page }) => {
  await startSignedIn(page);
  await openTool(page);
  await runButton(page).dblclick();
  await expectResults(page, 1);
  await page.reload();
  await expectResults(page, 1);
  await expect(credits(page, 15)).toBeVisible();
});

test.describe('refusals', () => {
  test.use({ expectedRefusals: [402] });

  test('a second free run of an image is refused', async ({ page }) => {
    await startSignedIn(page);
    await openTool(page);
    const other = await openAgain(page);
    await expect(freeButton(other)).toBeEnabled();

    await freeButton(page).click();
    await expectResults(page, 1);
    await expect(page.getByText('Free run used for this image')).toBeVisible();
    await expect(freeButton(page)).toBeDisabled();

    // The other tab has heard of it.
    await expectResults(other, 1);
    await expect(freeButton(other)).toBeDisabled();
    await expect(credits(other, 20)).toBeVisible();
  });

  test('after four runs the credits are used up', async ({ page }) => {
    await startSignedIn(page);
    await openTool(page);
    const runAgain = page.getByRole('alertdialog').getByRole('button', { name: 'Run again' });
    for (const run of [1, 2, 3, 4]) {
      await runButton(page).click();
      // The same run makes the same picture, so the page asks first.
      if (run > 1) await runAgain.click();
      await expectResults(page, run);
      await expect(credits(page, 20 - run * 5)).toBeVisible();
      await expect(runButton(page)).toBeEnabled();
    }
    await runButton(page).click();
    await runAgain.click();
    const notice = page.getByRole('alert').filter({ hasText: 'Not enough credits' });
    await expect(notice).toBeVisible();
    await expectAccessible(page);
    await notice.getByRole('link').click();
    await expect(page).toHaveURL(/\/pricing$/);
  });
});
