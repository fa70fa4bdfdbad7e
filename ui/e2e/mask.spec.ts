import {
  button,
  drawWithMouse,
  exportedMask,
  positionOn,
  prompt,
  sendPointer,
  strokes,
  surface,
} from './drawing';
import { aPicture } from './photo';
import { pictureOf } from './pixel';
import { startSignedIn } from './sign-in';
import { expect, test } from './test';
import { expectResults, magicFix, openMagicFix } from './tool';

test('strokes survive a reload, and can be undone, redone and cleared', { tag: '@firefox' }, async ({
  page,
}) => {
  await startSignedIn(page);
  await openMagicFix(page);
  await drawWithMouse(page);
  const dot = await positionOn(surface(page), 0.5, 0.7);
  await page.mouse.click(dot.x, dot.y);
  expect((await strokes(page)).map(({ points }) => points.length > 2)).toEqual([true, false]);

  await page.reload();
  await expect(button(page, 'Export mask')).toBeEnabled();
  expect(await strokes(page)).toHaveLength(2);
  await button(page, 'Undo').click();
  expect(await strokes(page)).toHaveLength(1);
  await button(page, 'Redo').click();
  expect(await strokes(page)).toHaveLength(2);
  await button(page, 'Clear').click();
  await expect(button(page, 'Export mask')).toBeDisabled();
  await page.keyboard.press('Control+z');
  await expect(button(page, 'Export mask')).toBeEnabled();
});

test('a mask is exported as a PNG of the image’s size, and can be imported again', {
  tag: '@firefox',
}, async ({ page }) => {
  await startSignedIn(page);
  await openMagicFix(page, aPicture(1200, 700));
  await drawWithMouse(page);
  const mask = await exportedMask(page);
  const { size, at } = await pictureOf(page, mask, [
    [600, 292],
    [10, 10],
  ]);
  expect(size).toBe('1200 × 700');
  expect([at(600, 292)[3], at(10, 10)[3]]).toEqual([255, 0]);

  await button(page, 'Clear').click();
  await page.getByLabel('Mask file').setInputFiles({ name: 'mask.png', mimeType: 'image/png', buffer: mask });
  await expect(button(page, 'Export mask')).toBeEnabled();
  expect((await exportedMask(page)).equals(mask)).toBe(true);

  await page.getByLabel('Mask file').setInputFiles(aPicture(300, 300));
  await expect(page.getByText('This mask is 300 × 300 px')).toBeVisible();
});

test('a pen draws while the hand rests on the screen', async ({ page }) => {
  await startSignedIn(page);
  await openMagicFix(page);
  await sendPointer(page, 'pointerdown', 'pen', 51, 0.3, 0.3);
  await sendPointer(page, 'pointerdown', 'touch', 52, 0.8, 0.8);
  await sendPointer(page, 'pointermove', 'pen', 51, 0.4, 0.4);
  await sendPointer(page, 'pointermove', 'touch', 52, 0.9, 0.9);
  await sendPointer(page, 'pointerup', 'touch', 52, 0.9, 0.9);
  await sendPointer(page, 'pointerup', 'pen', 51, 0.4, 0.4);
  const drawn = await strokes(page);
  expect(drawn.map(({ kind, points }) => [kind, points.length])).toEqual([['paint', 4]]);
});

test('a pen that presses harder draws a wider line, also in the mask', async ({ page, context }) => {
  await startSignedIn(page);
  await openMagicFix(page, aPicture(1200, 700));
  const pen = await context.newCDPSession(page);
  const send = async (type: 'mousePressed' | 'mouseMoved' | 'mouseReleased', x: number, force: number) =>
    pen.send('Input.dispatchMouseEvent', {
      type,
      ...(await positionOn(surface(page), x, 0.5)),
      button: 'left',
      buttons: type === 'mouseReleased' ? 0 : 1,
      pointerType: 'pen',
      force,
    });
  await send('mousePressed', 0.2, 0.1);
  for (let step = 1; step <= 30; step += 1) await send('mouseMoved', 0.2 + step * 0.02, step <= 15 ? 0.1 : 1);
  await send('mouseReleased', 0.8, 0);

  const [stroke] = await strokes(page);
  if (!stroke?.widths) throw new Error('the stroke has no widths');
  const { size, widths, points } = stroke;
  expect(widths).toHaveLength(points.length / 2);
  expect(widths.at(-1)).toBeCloseTo(size, 1);
  expect(widths[1]).toBeLessThan(size / 2);

  // Between the half width of the thin part and the half width of the wide part.
  const beside = (index: number): [x: number, y: number] => [
    Math.round(points[2 * index] ?? 0),
    Math.round((points[2 * index + 1] ?? 0) + 0.36 * size),
  ];
  const [thin, wide] = [beside(5), beside(25)];
  const { at } = await pictureOf(page, await exportedMask(page), [thin, wide]);
  expect([at(...thin)[3], at(...wide)[3]]).toEqual([0, 255]);
});

test('zoom, move and the eraser work with the mouse and the keyboard', { tag: '@firefox' }, async ({
  page,
}) => {
  await startSignedIn(page);
  await openMagicFix(page);
  await drawWithMouse(page);
  const [first] = await strokes(page);
  const middle = await positionOn(surface(page), 0.5, 0.5);
  await page.mouse.move(middle.x, middle.y);
  await page.mouse.wheel(0, -600);
  await expect(button(page, 'Fit')).toBeEnabled();
  await page.keyboard.down(' ');
  await drawWithMouse(page);
  await page.keyboard.up(' ');
  expect(await strokes(page)).toHaveLength(1);
  await page.keyboard.press('e');
  await expect(page.getByRole('radio', { name: 'Eraser' })).toBeChecked();
  await drawWithMouse(page);
  const second = (await strokes(page)).at(-1);
  // When zoomed in, twenty screen pixels are fewer image pixels.
  expect(second?.kind).toBe('erase');
  expect(second?.size).toBeLessThan(first?.size ?? 0);
  await button(page, 'Fit').click();
  await expect(button(page, 'Fit')).toBeDisabled();
});

for (const [width, height] of [
  [1280, 600],
  [1366, 650],
  [1440, 900],
] as const) {
  test(`picture, tools, prompt and button fit into ${width} × ${height}`, async ({ page }) => {
    await startSignedIn(page);
    await page.setViewportSize({ width, height });
    await openMagicFix(page);
    await drawWithMouse(page);
    const picture = await surface(page).boundingBox();
    const suggestion = await button(page, 'Remove this').boundingBox();
    expect((picture?.y ?? 0) + (picture?.height ?? 0)).toBeLessThanOrEqual(suggestion?.y ?? 0);
    await prompt(page).fill('remove the object');
    for (const shown of [surface(page), button(page, 'Undo'), prompt(page), magicFix(page)])
      await expect(shown).toBeInViewport({ ratio: 1 });
    await magicFix(page).click();
    await expect(page.getByRole('progressbar')).toBeInViewport({ ratio: 1 });
    await expectResults(page, 1);
    expect(await page.evaluate(() => window.scrollY)).toBe(0);
  });
}

test('nothing that has the focus lies behind the prompt', { tag: '@firefox' }, async ({ page }) => {
  await startSignedIn(page);
  await page.setViewportSize({ width: 1280, height: 800 });
  await openMagicFix(page);
  await surface(page).focus();
  for (const name of ['Zoom in', 'Import mask', 'Keyboard shortcuts', 'Restore']) {
    await page.keyboard.press('Tab');
    const reached = page.locator(':focus');
    await expect(reached).toHaveAccessibleName(name);
    const isClear = await reached.evaluate((element) => {
      const { x, y, width, height } = element.getBoundingClientRect();
      return element.contains(document.elementFromPoint(x + width / 2, y + height - 4));
    });
    expect(isClear, name).toBe(true);
  }
});

test('an image of any aspect ratio stays within the window', async ({ page }) => {
  await startSignedIn(page);
  await page.setViewportSize({ width: 360, height: 780 });
  for (const file of [aPicture(1600, 80), aPicture(80, 1600), aPicture(32, 32)]) {
    await openMagicFix(page, file);
    const overflow = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
    expect(overflow).toBeLessThanOrEqual(0);
    const words = await page.getByText('No images to show').boundingBox();
    expect(words?.height).toBeLessThan(32);
  }
});
