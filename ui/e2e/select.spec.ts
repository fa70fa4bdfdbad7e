import type { Page } from '@playwright/test';
import { button, drawWithMouse, exportedMask, positionOn, strokes, surface } from './drawing';
import { aPhoto, wall } from './photo';
import { pictureOf } from './pixel';
import { startSignedIn } from './sign-in';
import { expect, test } from './test';
import { credits, openMagicFix } from './tool';

/** Whether the exported mask marks pixels of the photo. */
async function marked(page: Page, points: [x: number, y: number][]): Promise<boolean[]> {
  const { at } = await pictureOf(page, await exportedMask(page), points);
  return points.map((point) => at(...point)[3] === 255);
}

const suit: [number, number] = [256, 307];

test('a click selects the astronaut, the brush refines it, and nothing is charged', {
  tag: '@firefox',
}, async ({ page }) => {
  await startSignedIn(page);
  await openMagicFix(page, aPhoto());
  await page.getByRole('radio', { name: 'Select' }).check({ force: true });
  // The picture is in the middle of the surface and as high as it.
  const at = await positionOn(surface(page), 0.5, 0.6);
  await page.mouse.click(at.x, at.y);
  await expect.poll(async () => (await strokes(page)).map(({ kind }) => kind)).toEqual(['area']);
  expect(await marked(page, [suit, wall])).toEqual([true, false]);

  await page.getByRole('radio', { name: 'Eraser' }).check({ force: true });
  await drawWithMouse(page, [
    [0.45, 0.6],
    [0.55, 0.6],
  ]);
  expect(await marked(page, [suit, wall])).toEqual([false, false]);
  await button(page, 'Undo').click();
  await button(page, 'Undo').click();
  await expect(button(page, 'Export mask')).toBeDisabled();

  await button(page, 'Select subject').click();
  await expect.poll(async () => (await strokes(page)).map(({ kind }) => kind)).toEqual(['area']);
  expect(await marked(page, [suit, wall])).toEqual([true, false]);
  await expect(credits(page, 20)).toBeVisible();
});
