import type { Page } from '@playwright/test';
import { positionOn, surface } from './drawing';
import { aPicture } from './photo';
import { percentile, scriptPerEvent } from './script-time';
import { startSignedIn } from './sign-in';
import { expect, test } from './test';
import { openMagicFix } from './tool';

// Playwright's trace would run in the page and be measured too.
test.use({ trace: 'off' });

const SIDE = 6000;
const BUDGET_MS = 8;
const STROKES = 40;
const MOVES = 150;

/** A wavy line over the image, from 0 to 1 on each axis. */
function* wave(moves: number): Generator<[x: number, y: number]> {
  for (let move = 0; move <= moves; move += 1) {
    const along = move / moves;
    yield [0.1 + 0.8 * along, 0.5 + 0.35 * Math.sin(along * 9)];
  }
}

async function follow(page: Page, moves: number) {
  const { x: left, y: top } = await positionOn(surface(page), 0, 0);
  const { x: right, y: bottom } = await positionOn(surface(page), 1, 1);
  for (const [x, y] of wave(moves))
    await page.mouse.move(left + x * (right - left), top + y * (bottom - top));
}

async function drag(page: Page, moves: number) {
  const start = await positionOn(surface(page), 0.1, 0.5);
  await page.mouse.move(start.x, start.y);
  await page.mouse.down();
  await follow(page, moves);
  await page.mouse.up();
}

async function expectFast(page: Page, what: string, act: () => Promise<void>) {
  const spent = await scriptPerEvent(page, 'pointermove', act);
  const [p50, p95] = [percentile(spent, 0.5), percentile(spent, 0.95)];
  const line = `${what}: ${spent.length} moves, script p50 ${p50.toFixed(2)} ms, p95 ${p95.toFixed(2)} ms`;
  process.stdout.write(`${line}\n`);
  expect(spent.length).toBeGreaterThan(MOVES / 3);
  expect(p95, line).toBeLessThanOrEqual(BUDGET_MS);
}

test(`drawing on ${SIDE} × ${SIDE} pixels keeps up with the pointer`, async ({ page }) => {
  await startSignedIn(page);
  await openMagicFix(page, aPicture(SIDE, SIDE));
  const layers = surface(page).locator('canvas');
  await expect(layers.first()).toBeVisible();

  // The canvas has the size of the screen area, not of the image.
  const frame = await surface(page).boundingBox();
  const sizes = await layers.evaluateAll((found) =>
    found.map((canvas) => [(canvas as HTMLCanvasElement).width, (canvas as HTMLCanvasElement).height]),
  );
  for (const [width = 0, height = 0] of sizes) {
    expect(width).toBeLessThanOrEqual((frame?.width ?? 0) + 1);
    expect(height).toBeLessThanOrEqual((frame?.height ?? 0) + 1);
  }

  await expectFast(page, 'pointing', () => follow(page, MOVES));
  await expectFast(page, 'the first stroke', () => drag(page, MOVES));
  for (let stroke = 0; stroke < STROKES; stroke += 1) await drag(page, 12);
  await expectFast(page, `a stroke over ${STROKES} others`, () => drag(page, MOVES));
  await page.keyboard.press('e');
  await expectFast(page, 'erasing', () => drag(page, MOVES));
  const middle = await positionOn(surface(page), 0.5, 0.5);
  await page.mouse.move(middle.x, middle.y);
  await page.mouse.wheel(0, -900);
  await page.keyboard.down(' ');
  await expectFast(page, 'panning the zoomed image', () => drag(page, MOVES));
  await page.keyboard.up(' ');
});
