import { firstLoad, total } from './first-load';
import { aPicture } from './photo';
import { startSignedIn } from './sign-in';
import { expect, test } from './test';

/** The budget of the page in English (budget.spec.ts), and the budget of a catalogue's first texts. */
const BUDGET_BYTES = 150_000;
const CATALOGUE_BYTES = 15_000;

const language = 'Sprache';

test.use({ viewport: { width: 1440, height: 900 } });

test.describe('with a German browser', () => {
  test.use({ locale: 'de-AT' });

  test('the page is German from its first text, and one request larger', async ({ page }) => {
    const { scripts } = await firstLoad(page, '/dashboard');
    await expect(page.getByRole('heading', { level: 1 })).toHaveText('KI‑Bildbearbeitung leicht gemacht');
    await expect(page.locator('html')).toHaveAttribute('lang', 'de');
    await expect(page).toHaveTitle('Retouch · KI-Bildbearbeitung leicht gemacht');
    expect(scripts.de).toBeLessThan(CATALOGUE_BYTES);
    expect(total(scripts) - (scripts.de ?? 0)).toBeLessThan(BUDGET_BYTES);
    expect(scripts).not.toHaveProperty('de-later');
  });

  test('a page with later texts loads them, and again when the language changes', async ({ page }) => {
    const { scripts } = await firstLoad(page, '/verify');
    await expect(page.getByRole('heading', { name: 'Was sind Content Credentials?' })).toBeVisible();
    expect(scripts).toHaveProperty('de-later');
    await page.getByRole('contentinfo').getByLabel(language).selectOption('日本語');
    await expect(page.getByRole('heading', { name: 'Content Credentials とは' })).toBeVisible();
  });

  test('prices, plurals and titles follow the language', async ({ page }) => {
    await page.goto('/pricing');
    await expect(page.getByText('20 Credits', { exact: true })).toBeVisible();
    await expect(page.getByText('2 $', { exact: true })).toBeVisible();
    await expect(page.getByText('Am beliebtesten')).toBeVisible();
    await expect(page).toHaveTitle('Preise · Retouch');
  });

  test('a visitor switches to Japanese without a reload, and the choice survives one', async ({ page }) => {
    await page.goto('/upscale');
    await page.getByLabel('Bilddatei').setInputFiles(aPicture(40, 30));
    await expect(page.getByText('40 × 30 px')).toBeVisible();
    await page.getByRole('contentinfo').getByLabel(language).selectOption('日本語');
    await expect(page.getByRole('heading', { level: 1 })).toHaveText('高解像度化');
    await expect(page.locator('html')).toHaveAttribute('lang', 'ja');
    // The chosen picture is still there.
    await expect(page.getByText('40 × 30 px')).toBeVisible();
    await page.reload();
    await expect(page.getByRole('heading', { level: 1 })).toHaveText('高解像度化');
    await page.getByRole('contentinfo').getByLabel('言語').selectOption('English');
    await expect(page.getByRole('heading', { level: 1 })).toHaveText('Upscale');
    await expect(page.locator('html')).toHaveAttribute('lang', 'en');
  });

  test('long labels of buttons wrap beside a chosen picture', async ({ page }) => {
    await page.goto('/remove-background');
    await page.getByLabel('Bilddatei').setInputFiles(aPicture(40, 30));
    await expect(
      page.getByRole('link', { name: 'Hintergrund entfernen (KI) (nur mit Anmeldung)' }),
    ).toBeVisible();
    for (const width of [320, 1024, 1280]) {
      await page.setViewportSize({ width, height: 900 });
      const overflow = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
      expect(overflow, `at ${width} px`).toBeLessThanOrEqual(0);
    }
  });

  test.describe('and a failing API', () => {
    test.use({ expectedRefusals: [422] });

    test('the sentence of the API is translated, with its numbers', async ({ page }) => {
      await page.route('**/api/free/upscale-fr', (route) =>
        route.fulfill({
          status: 422,
          contentType: 'application/problem+json',
          body: JSON.stringify({ detail: 'The file is too large (max 50 MB).' }),
        }),
      );
      await page.goto('/upscale');
      await page.getByLabel('Bilddatei').setInputFiles(aPicture(40, 30));
      await page.getByRole('button', { name: 'Kostenlos hochskalieren' }).click();
      await expect(page.getByText('Die Datei ist zu groß (höchstens 50 MB).')).toBeVisible();
    });
  });

  test('without its catalogue, the page is English', async ({ page }) => {
    await page.route('**/assets/de-*.js', (route) =>
      route.fulfill({ contentType: 'text/javascript', body: 'throw 0' }),
    );
    await page.goto('/pricing');
    await expect(page.getByRole('heading', { level: 1 })).toHaveText('Flexible Pricing. Full Control');
    await expect(page.locator('html')).toHaveAttribute('lang', 'en');
  });

  test('without its later texts, a page shows English in their place', async ({ page }) => {
    await page.route('**/assets/de-later-*.js', (route) =>
      route.fulfill({ contentType: 'text/javascript', body: 'throw 0' }),
    );
    await page.goto('/verify');
    await expect(page.getByRole('heading', { level: 1 })).toHaveText('Bild prüfen');
    await expect(page.getByRole('heading', { name: 'What are Content Credentials?' })).toBeVisible();
  });
});

test('a user switches in the menu of the account', async ({ page }) => {
  const email = await startSignedIn(page);
  await page.goto('/dashboard');
  await page.getByRole('button', { name: email }).click();
  await page.getByRole('menuitemradio', { name: 'Français' }).click();
  await expect(page.getByRole('heading', { level: 1 })).toHaveText(
    'La retouche d’images par IA, en toute simplicité',
  );
});

test('English needs no catalogue', async ({ page }) => {
  for (const path of ['/dashboard', '/verify']) {
    const { scripts } = await firstLoad(page, path);
    const catalogues = Object.keys(scripts).filter((name) =>
      /^(de|es|fr|pt|ja|zh-Hans)(-later)?$/.test(name),
    );
    expect(catalogues).toEqual([]);
  }
});
