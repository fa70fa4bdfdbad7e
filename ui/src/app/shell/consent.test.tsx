import { screen, waitFor } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { beforeEach, describe, expect, test } from 'vitest';
import { useConsent } from '@/lib/consent';
import { aConfig } from '@/testing/builders';
import { MockApi } from '@/testing/mock-api';
import { renderApp } from '@/testing/render-app';

const adTag = { id: 'AW-1', conversion: 'AW-1/signup' };
const withTag = () => Object.assign(new MockApi(), { config: aConfig({ site: { adTag } }) });

const question = () => screen.findByRole('region', { name: 'May we count your sign-up?' });
const tagScript = () => document.querySelector('script[src*="googletagmanager"]');
/** What was sent to the tag; it is told in `arguments` objects. */
const sent = () => (window.dataLayer ?? []).map((command) => Array.from(command as ArrayLike<unknown>));

beforeEach(() => {
  useConsent.getState().decide('undecided');
  window.dataLayer = undefined;
  tagScript()?.remove();
});

describe('where an advertising tag is configured', () => {
  test('people are asked once, and can change their mind', async () => {
    renderApp('/pricing', { api: withTag() });
    await question();
    await userEvent.click(screen.getByRole('button', { name: 'Yes' }));
    expect(screen.queryByRole('region', { name: /count/ })).toBeNull();
    expect(localStorage.getItem('retouch-consent')).toBe('given');
    await userEvent.click(screen.getByRole('button', { name: 'Cookies' }));
    await question();
    await userEvent.click(screen.getByRole('button', { name: 'No' }));
    expect(localStorage.getItem('retouch-consent')).toBe('refused');
  });

  test('a sign-in is counted with consent', async () => {
    useConsent.getState().decide('given');
    const { router } = renderApp('/authcallback', { api: withTag(), signedIn: true });
    await waitFor(() => expect(router.state.location.pathname).toBe('/dashboard'));
    expect(sent()).toContainEqual([
      'event',
      'conversion',
      { send_to: 'AW-1/signup', value: 1, currency: 'EUR' },
    ]);
    expect(tagScript()).toHaveAttribute('src', 'https://www.googletagmanager.com/gtag/js?id=AW-1');
  });

  test('so is one that goes on to Magic Fix', async () => {
    useConsent.getState().decide('given');
    const { router } = renderApp('/authcallback-magic', { api: withTag(), signedIn: true });
    await waitFor(() => expect(router.state.location.pathname).toBe('/magic'));
    expect(sent().filter(([command]) => command === 'event')).toHaveLength(1);
  });

  test.each(['undecided', 'refused'] as const)(
    'nothing is fetched or told when consent is %s',
    async (consent) => {
      useConsent.getState().decide(consent);
      const { router } = renderApp('/authcallback', { api: withTag(), signedIn: true });
      await waitFor(() => expect(router.state.location.pathname).toBe('/dashboard'));
      expect(sent()).toEqual([]);
      expect(tagScript()).toBeNull();
    },
  );

  test('a failed login is not counted', async () => {
    useConsent.getState().decide('given');
    renderApp('/authcallback', { api: withTag() });
    await screen.findByRole('heading', { name: 'Login Failed' });
    expect(sent()).toEqual([]);
  });
});

test('where none is configured nobody is asked anything, and nothing is told', async () => {
  useConsent.getState().decide('given');
  const { router } = renderApp('/authcallback', { signedIn: true });
  await waitFor(() => expect(router.state.location.pathname).toBe('/dashboard'));
  useConsent.getState().decide('undecided');
  expect(await screen.findByRole('link', { name: 'Contact' })).toBeVisible();
  expect(screen.queryByRole('region', { name: /count/ })).toBeNull();
  expect(screen.queryByRole('button', { name: 'Cookies' })).toBeNull();
  expect(sent()).toEqual([]);
});
