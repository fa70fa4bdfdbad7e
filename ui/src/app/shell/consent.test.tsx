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
/** The commands sent to the tag, which are `arguments` objects. */
const commands = () => (window.dataLayer ?? []).map((command) => Array.from(command as ArrayLike<unknown>));

beforeEach(() => {
  useConsent.getState().decide('undecided');
  window.dataLayer = undefined;
  tagScript()?.remove();
});

describe('with an advertising tag', () => {
  test('asks once, and lets users change their mind', async () => {
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

  test('counts a sign-in with consent', async () => {
    useConsent.getState().decide('given');
    const { router } = renderApp('/authcallback', { api: withTag(), signedIn: true });
    await waitFor(() => expect(router.state.location.pathname).toBe('/dashboard'));
    expect(commands()).toContainEqual([
      'event',
      'conversion',
      { send_to: 'AW-1/signup', value: 1, currency: 'EUR' },
    ]);
    expect(tagScript()).toHaveAttribute('src', 'https://www.googletagmanager.com/gtag/js?id=AW-1');
  });

  test('counts a sign-in that continues to Magic Fix', async () => {
    useConsent.getState().decide('given');
    const { router } = renderApp('/authcallback-magic', { api: withTag(), signedIn: true });
    await waitFor(() => expect(router.state.location.pathname).toBe('/magic'));
    expect(commands().filter(([command]) => command === 'event')).toHaveLength(1);
  });

  test.each(['undecided', 'refused'] as const)(
    'loads and sends nothing if consent is %s',
    async (consent) => {
      useConsent.getState().decide(consent);
      const { router } = renderApp('/authcallback', { api: withTag(), signedIn: true });
      await waitFor(() => expect(router.state.location.pathname).toBe('/dashboard'));
      expect(commands()).toEqual([]);
      expect(tagScript()).toBeNull();
    },
  );

  test('does not count a failed login', async () => {
    useConsent.getState().decide('given');
    renderApp('/authcallback', { api: withTag() });
    await screen.findByRole('heading', { name: 'Login Failed' });
    expect(commands()).toEqual([]);
  });
});

test('without an advertising tag, the page asks for no consent and sends nothing', async () => {
  useConsent.getState().decide('given');
  const { router } = renderApp('/authcallback', { signedIn: true });
  await waitFor(() => expect(router.state.location.pathname).toBe('/dashboard'));
  useConsent.getState().decide('undecided');
  expect(await screen.findByRole('link', { name: 'Contact' })).toBeVisible();
  expect(screen.queryByRole('region', { name: /count/ })).toBeNull();
  expect(screen.queryByRole('button', { name: 'Cookies' })).toBeNull();
  expect(commands()).toEqual([]);
});
