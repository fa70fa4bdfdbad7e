import { act, createEvent, fireEvent, screen, waitFor, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { delay, HttpResponse, http } from 'msw';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { useReload } from '@/lib/load-with-retry';
import { aConfig, aUser } from '@/testing/builders';
import { MockApi } from '@/testing/mock-api';
import { renderApp } from '@/testing/render-app';
import { server } from '@/testing/server';

const main = () => screen.getByRole('main');

describe('the top bar', () => {
  test('offers the smallest pack at its configured price', async () => {
    const [pack, ...others] = aConfig().packs;
    if (!pack) throw new Error('there are packs');
    const config = aConfig({ packs: [{ ...pack, credits: 30, amount: 250 }, ...others] });
    renderApp('/pricing', { api: Object.assign(new MockApi(), { config }), signedIn: true });
    expect(await screen.findByRole('link', { name: '30 Credits for $2.50' })).toHaveAttribute(
      'href',
      '/pricing',
    );
  });

  test('shows the held credits in a tooltip, which Escape hides', async () => {
    const api = Object.assign(new MockApi(), { user: aUser({ credits: 12, reserved: 8 }) });
    renderApp('/pricing', { api, signedIn: true });
    const button = await screen.findByRole('link', { name: 'credits 12' });
    expect(button).toHaveAccessibleDescription('8 credits held for runs in progress');
    const hint = screen.getByRole('tooltip', { hidden: true });
    expect(hint.className).toContain('group-has-focus-visible');
    button.focus();
    await userEvent.keyboard('{Escape}');
    expect(hint.className).not.toContain('group-has-focus-visible');
    await userEvent.tab();
    expect(hint.className).toContain('group-has-focus-visible');
  });

  test('shows a dash while the credits are unknown', async () => {
    renderApp('/pricing', { signedIn: true });
    server.use(http.get('*/api/user/get', () => delay('infinite')));
    expect(await screen.findByRole('link', { name: 'credits –' })).toBeVisible();
  });
});

test('logging out clears all user data and shows the login page', async () => {
  server.use(http.get('http://identity.test/*', () => HttpResponse.error()));
  const { queryClient } = renderApp('/images', { signedIn: true });
  await userEvent.click(await screen.findByRole('button', { name: 'ada@example.com' }));
  await userEvent.click(await screen.findByRole('menuitem', { name: 'Logout' }));
  expect(await screen.findByRole('heading', { name: 'Login' })).toBeVisible();
  expect(Object.keys(localStorage).filter((key) => key.startsWith('oidc'))).toEqual([]);
  expect(queryClient.getQueryData(['user'])).toBeUndefined();
});

test('a protected page is empty while the session is loading', async () => {
  server.use(http.get('http://identity.test/*', () => delay('infinite')));
  const { router } = renderApp('/images', { signedIn: true });
  await screen.findByText('No images to show');
  await userEvent.click(await screen.findByRole('button', { name: 'ada@example.com' }));
  await userEvent.click(await screen.findByRole('menuitem', { name: 'Logout' }));
  await waitFor(() => expect(main()).toBeEmptyDOMElement());
  expect(router.state.location.pathname).toBe('/images');
  expect(screen.queryByRole('link', { name: 'Login' })).toBeNull();
});

test('the drawer has all links, and returns the focus when Escape closes it', async () => {
  renderApp('/terms', { signedIn: true });
  const opener = await screen.findByRole('button', { name: 'Open menu' });
  await userEvent.click(opener);
  const drawer = await screen.findByRole('dialog', { name: 'ada@example.com' });
  expect(within(drawer).getByRole('link', { name: '20 Credits for $2' })).toHaveAttribute('href', '/pricing');
  await userEvent.keyboard('{Escape}');
  expect(screen.queryByRole('dialog')).toBeNull();
  await userEvent.click(opener);
  await userEvent.click(within(await screen.findByRole('dialog')).getByRole('link', { name: 'Pricing' }));
  expect(await screen.findByRole('heading', { name: 'Flexible Pricing. Full Control' })).toBeVisible();
  expect(screen.queryByRole('dialog')).toBeNull();
});

test('the link to the content leaves the history alone, which knows the page to return to', async () => {
  const { router } = renderApp('/login');
  const before = router.state.location;
  await userEvent.click(await screen.findByRole('link', { name: 'Skip to content' }));
  expect(main()).toHaveFocus();
  expect(window.location.hash).toBe('');
  expect(router.state.location).toBe(before);
});

test('the Back button closes the drawer', async () => {
  const { router } = renderApp('/terms');
  await screen.findByRole('heading', { name: 'Terms of Service' });
  await router.navigate('/pricing');
  await screen.findByRole('heading', { name: 'Flexible Pricing. Full Control' });
  await userEvent.click(screen.getByRole('button', { name: 'Open menu' }));
  await screen.findByRole('dialog', { name: 'Menu' });
  await router.navigate(-1);
  await waitFor(() => expect(screen.queryByRole('dialog')).toBeNull());
  expect(await screen.findByRole('heading', { name: 'Terms of Service' })).toBeVisible();
});

test('there is no contact link without a configured address', async () => {
  renderApp('/terms', {
    api: Object.assign(new MockApi(), {
      config: aConfig({ site: { contactEmail: null, adTag: null, rating: null } }),
    }),
  });
  await screen.findByRole('heading', { name: 'Terms of Service' });
  expect(screen.queryByRole('link', { name: 'Contact' })).toBeNull();
  expect(main()).toBeVisible();
});

describe('a file dropped outside a drop area', () => {
  test.each(['dragOver', 'drop'] as const)('does not replace the page: %s', async (kind) => {
    renderApp('/terms');
    await screen.findByRole('heading', { name: 'Terms of Service' });
    const drop = (types: string[]) => {
      const event = createEvent[kind](main(), { dataTransfer: { types, files: [] } });
      fireEvent(main(), event);
      return event.defaultPrevented;
    };
    expect(drop(['Files'])).toBe(true);
    // Text may be dragged into a field.
    expect(drop(['text/plain'])).toBe(false);
  });
});

test('the page says when it is offline, and only then', async () => {
  renderApp('/terms');
  await screen.findByRole('heading', { name: 'Terms of Service' });
  const onLine = vi.spyOn(navigator, 'onLine', 'get').mockReturnValue(false);
  fireEvent.offline(window);
  expect(await screen.findByRole('alert')).toHaveTextContent(/^You are offline/);
  onLine.mockReturnValue(true);
  fireEvent.online(window);
  expect(screen.queryByRole('alert')).toBeNull();
});

test.each([
  [{ isOutdated: true }, 'Retouch was updated.'],
  [{ missing: async () => {} }, 'Part of this page could not be loaded.'],
])('the page says why it asks for a reload: %o', async (cause, reason) => {
  onTestFinished(() => act(() => useReload.setState({ isOutdated: false, missing: null })));
  renderApp('/pricing');
  await screen.findByRole('heading', { level: 1 });
  expect(screen.queryByRole('button', { name: 'Reload' })).toBeNull();
  act(() => useReload.setState(cause));
  expect(screen.getByText(reason, { exact: false })).toHaveTextContent(
    'Reload to continue. Your runs, masks, and prompts are kept.',
  );
  expect(screen.getByRole('button', { name: 'Reload' })).toBeEnabled();
});
