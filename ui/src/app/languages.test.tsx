import { act, screen } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { startLanguage, switchLanguage } from '@/lib/language';
import { renderApp } from '@/testing/render-app';

vi.mock('@/languages/fr.po?later', () => {
  throw new Error('no connection');
});

async function openVerify(language: string) {
  vi.spyOn(navigator, 'languages', 'get').mockReturnValue([language]);
  await startLanguage();
  renderApp('/verify');
  return screen.findByRole('heading', { level: 2, name: /Content Credentials/ });
}

afterEach(() => act(() => switchLanguage('en')));

describe('a page with later texts', () => {
  test('appears with them, and follows a change of the language', async () => {
    expect(await openVerify('de')).toHaveTextContent('Was sind Content Credentials?');
    await userEvent.selectOptions(screen.getByLabelText('Sprache'), '日本語');
    expect(await screen.findByText('Content Credentials とは')).toBeVisible();
    expect(document.documentElement).toHaveAttribute('lang', 'ja');
  });

  test('shows English in their place if they cannot be loaded', async () => {
    expect(await openVerify('fr')).toHaveTextContent('What are Content Credentials?');
    expect(screen.getByRole('heading', { level: 1 })).toHaveTextContent('Vérifier une image');
  });
});
