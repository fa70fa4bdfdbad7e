import { beforeEach, describe, expect, test, vi } from 'vitest';

const loadSpanish = vi.hoisted(() => vi.fn(() => ({ default: {} })));
const fail = vi.hoisted(() => () => {
  throw new Error('no connection');
});
vi.mock('@/languages/es.po?later', loadSpanish);
vi.mock('@/languages/fr.po?later', fail);
vi.mock('@/languages/pt.po', fail);

/** Starts the page in a language. No page has asked for the later texts yet. */
async function startIn(language: string) {
  vi.spyOn(navigator, 'languages', 'get').mockReturnValue([language]);
  const { startLanguage, switchLanguage, withLaterTexts } = await import('./language');
  const { t } = await import('./translate');
  await startLanguage();
  return {
    switchLanguage,
    withLaterTexts,
    firstText: () => t('Image not found'),
    laterText: () => t('Webhook not found'),
  };
}

const loadCode = async () => 'code';

describe('the later texts', () => {
  beforeEach(() => void vi.resetModules());

  test('load with the code that needs them, and not before', async () => {
    const { withLaterTexts, firstText, laterText } = await startIn('de');
    expect(firstText()).toBe('Bild nicht gefunden');
    expect(laterText()).toBe('Webhook not found');
    expect(await withLaterTexts(loadCode)()).toBe('code');
    expect(laterText()).toBe('Webhook nicht gefunden');
  });

  test('are requested at the same time as the code', async () => {
    const { withLaterTexts } = await startIn('es');
    expect(loadSpanish).not.toHaveBeenCalled();
    void withLaterTexts(() => new Promise(() => {}))();
    await vi.waitFor(() => expect(loadSpanish).toHaveBeenCalled());
  });

  test('stay when the language changes', async () => {
    const { withLaterTexts, switchLanguage, laterText } = await startIn('en');
    await withLaterTexts(loadCode)();
    await switchLanguage('de');
    expect(laterText()).toBe('Webhook nicht gefunden');
  });

  test('are in a language that is still loading', async () => {
    const { withLaterTexts, switchLanguage, laterText } = await startIn('en');
    const switched = switchLanguage('de');
    await Promise.all([switched, withLaterTexts(loadCode)()]);
    expect(laterText()).toBe('Webhook nicht gefunden');
  });

  test('are in the language on the screen after a switch has failed', async () => {
    const { withLaterTexts, switchLanguage, firstText, laterText } = await startIn('de');
    await switchLanguage('pt');
    await withLaterTexts(loadCode)();
    expect(firstText()).toBe('Bild nicht gefunden');
    expect(laterText()).toBe('Webhook nicht gefunden');
  });

  test('are English if they cannot be loaded', async () => {
    const { withLaterTexts, firstText, laterText } = await startIn('fr');
    expect(await withLaterTexts(loadCode)()).toBe('code');
    expect(firstText()).toBe('Image introuvable');
    expect(laterText()).toBe('Webhook not found');
  });
});
