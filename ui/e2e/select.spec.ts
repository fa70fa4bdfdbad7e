import { readFile } from 'node:fs/promises';
import type { Page } from '@playwright/test';
import { button, drawWithMouse, positionOn, strokes, surface } from './drawing';
import { aPhoto } from './photo';
import { signInAsSomeoneNew } from './sign-in';
import { expect, test } from './test';
import { credits, openMagicFix } from './tool';

/** Whether the exported mask marks pixels of the photo. */
async function marked(page: Page, points: [x: number, y: number][]): Promise<boolean[]> {
  await expect(button(page, 'Export mask')).toBeEnabled();
  const downloading = page.waitForEvent('download');
  await button(page, 'Export mask').click();
  const file = await readFile(await (await downloading).path());
  return page.evaluate(
    async ([base64, points]) => {
      const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
      const bitmap = await createImageBitmap(new Blob([bytes]));
      const context = new OffscreenCanvas(bitmap.width, bitmap.height).getContext('2d', {
        willReadFrequently: true,
      });
      if (!context) throw new Error('no canvas');
      context.drawImage(bitmap, 0, 0);
      return points.map(([x, y]) => context.getImageData(x, y, 1, 1).data[3] === 255);
    },
    [file.toString('base64'), points] as const,
  );
}

const suit: [number, number] = [256, 307];
const wall: [number, number] = [330, 60];

test('a click selects the astronaut, the brush refines it, and nothing is charged', async ({ page }) => {
  await signInAsSomeoneNew(page);
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
