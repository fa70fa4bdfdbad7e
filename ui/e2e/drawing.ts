import { readFile } from 'node:fs/promises';
import type { Locator, Page } from '@playwright/test';

export const surface = (page: Page) => page.getByRole('application', { name: 'Image to draw on' });
export const prompt = (page: Page) => page.getByRole('textbox', { name: 'Prompt' });
export const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true });

/** Converts a position on the image, from 0 to 1 on each axis, to window pixels. */
export async function positionOn(image: Locator, x: number, y: number) {
  await image.scrollIntoViewIfNeeded();
  const box = await image.boundingBox();
  if (!box) throw new Error('the image is not visible');
  return { x: box.x + x * box.width, y: box.y + y * box.height };
}

export type Path = [x: number, y: number][];
const across: Path = [
  [0.4, 0.4],
  [0.5, 0.42],
  [0.6, 0.4],
];

export async function drawWithMouse(page: Page, path: Path = across) {
  for (const [index, [x, y]] of path.entries()) {
    const position = await positionOn(surface(page), x, y);
    await page.mouse.move(position.x, position.y, { steps: 4 });
    if (index === 0) await page.mouse.down();
  }
  await page.mouse.up();
}

type DrawnStroke = { kind: string; size: number; points: number[]; widths?: number[] };

/** Reads the strokes from the session storage, after the page has written them. */
export async function strokes(page: Page): Promise<DrawnStroke[]> {
  await page.waitForTimeout(400);
  return page.evaluate(() => {
    const stored = JSON.parse(sessionStorage.getItem('retouch-magic-fix') ?? '{}');
    const id = window.location.pathname.split('/').at(-1) ?? '';
    return stored.state?.drafts?.[id]?.done ?? [];
  });
}

/** Exports the mask, and returns the PNG. */
export async function exportedMask(page: Page): Promise<Buffer> {
  const downloading = page.waitForEvent('download');
  // Waits until the button is enabled.
  await button(page, 'Export mask').click();
  return readFile(await (await downloading).path());
}

/** Dispatches the events of a pen or a finger, which the test browser does not have. */
export async function sendPointer(
  page: Page,
  name: string,
  kind: 'pen' | 'touch',
  id: number,
  x: number,
  y: number,
) {
  await surface(page).evaluate(
    (element, [name, kind, id, x, y]) => {
      const box = element.getBoundingClientRect();
      element.dispatchEvent(
        new PointerEvent(name, {
          bubbles: true,
          pointerId: id,
          pointerType: kind,
          isPrimary: true,
          button: 0,
          buttons: name === 'pointerup' ? 0 : 1,
          clientX: box.left + x * box.width,
          clientY: box.top + y * box.height,
        }),
      );
    },
    [name, kind, id, x, y] as const,
  );
}
