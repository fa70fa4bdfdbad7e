import { act, screen, waitFor } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { HttpResponse, http } from 'msw';
import { type User, UserManager } from 'oidc-client-ts';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { aConfig } from '@/testing/builders';
import { MockApi } from '@/testing/mock-api';
import { renderApp } from '@/testing/render-app';
import { server } from '@/testing/server';
import { storeSession } from '@/testing/session';

describe('access to routes', () => {
  test.each([
    '/images',
    '/images/1',
    '/remove-background/1',
    '/background/1',
    '/upscale/1',
    '/magic/1',
    '/checkouts',
    '/checkouts/1',
    '/checkout',
    '/return',
    '/account',
  ])('redirects a visitor from %s to the login page', async (path) => {
    const { router } = renderApp(path);
    expect(await screen.findByRole('heading', { name: 'Login' })).toBeVisible();
    expect(router.state.location.pathname).toBe('/login');
  });

  test('keeps the requested page for after the sign-in, also through the sign-up', async () => {
    const { router } = renderApp('/upscale/image-1?a=b');
    expect(await screen.findByRole('heading', { name: 'Login' })).toBeVisible();
    expect(router.state.location.state).toBe('/upscale/image-1?a=b');
    await userEvent.click(screen.getByRole('link', { name: 'Create an account' }));
    expect(await screen.findByRole('heading', { name: 'Create your account' })).toBeVisible();
    expect(router.state.location.state).toBe('/upscale/image-1?a=b');
  });

  test('returns to the requested page after the sign-in', async () => {
    window.history.replaceState(null, '', '/authcallback?code=1&state=2');
    const user = { access_token: 'new', profile: { sub: 'user-1' }, state: '/images' } as User;
    vi.spyOn(UserManager.prototype, 'signinCallback').mockResolvedValue(user);
    const { router } = renderApp('/authcallback');
    await waitFor(() => expect(router.state.location.pathname).toBe('/images'));
    window.history.replaceState(null, '', '/');
  });

  test('does not keep the page of a user who signed out', async () => {
    server.use(http.get('http://identity.test/*', () => HttpResponse.error()));
    const { router } = renderApp('/images', { signedIn: true });
    await userEvent.click(await screen.findByRole('button', { name: 'ada@example.com' }));
    await userEvent.click(await screen.findByRole('menuitem', { name: 'Logout' }));
    expect(await screen.findByRole('heading', { name: 'Login' })).toBeVisible();
    expect(router.state.location.state).toBeNull();
  });

  test('redirects the root to the dashboard', async () => {
    const { router } = renderApp('/');
    expect(await screen.findByRole('heading', { name: 'AI Image Editing Made Simple' })).toBeVisible();
    expect(router.state.location.pathname).toBe('/dashboard');
  });

  test('shows Try for free to visitors only', async () => {
    renderApp('/dashboard', { signedIn: true });
    await screen.findByRole('link', { name: 'Go to My Images' });
    expect(screen.queryByRole('link', { name: 'Try for free' })).toBeNull();
  });

  test('ends the session at the login page when the API refuses the token', async () => {
    const { router } = renderApp('/images', { signedIn: true });
    server.use(http.get('*/api/images', () => new HttpResponse(null, { status: 401 })));
    await waitFor(() => expect(router.state.location.pathname).toBe('/login'));
    expect(router.state.location.state).toBe('/images');
    expect(screen.queryByText('Failed to load your images')).toBeNull();
  });

  test('keeps the page that anyone may see when the API refuses the token there', async () => {
    const { router } = renderApp('/pricing?a=b', { signedIn: true });
    server.use(http.get('*/api/user/get', () => new HttpResponse(null, { status: 401 })));
    await waitFor(() => expect(router.state.location.pathname).toBe('/login'));
    expect(router.state.location.state).toBe('/pricing?a=b');
  });

  test('never returns to the page for signing up, which signs out', async () => {
    const { router } = renderApp('/signup', { signedIn: true });
    server.use(http.get('*/api/user/get', () => new HttpResponse(null, { status: 401 })));
    expect(await screen.findByRole('heading', { name: 'Login' })).toBeVisible();
    expect(router.state.location.state).toBeNull();
  });

  test('shows a not-found page for an unknown path', async () => {
    renderApp('/nowhere');
    expect(await screen.findByRole('heading', { name: 'This page does not exist' })).toBeVisible();
  });
});

describe('signing in', () => {
  test('offers the providers that are set up, and only those', async () => {
    const config = aConfig();
    config.identity.providers = { google: 'Google', facebook: null, password: '' };
    renderApp('/login', { api: Object.assign(new MockApi(), { config }) });
    expect(await screen.findByRole('button', { name: 'Login with Google' })).toBeEnabled();
    expect(screen.getByRole('button', { name: 'Login with Username and Password' })).toBeEnabled();
    expect(screen.queryByText(/Facebook/)).toBeNull();
  });

  test('signs out a user who opens the login page', async () => {
    server.use(http.get('http://identity.test/*', () => HttpResponse.error()));
    renderApp('/login', { signedIn: true });
    expect(await screen.findByRole('button', { name: 'Login with Username and Password' })).toBeEnabled();
    expect(Object.keys(localStorage).filter((key) => key.startsWith('oidc'))).toEqual([]);
  });

  test('shows Login Failed for a callback without a sign-in', async () => {
    renderApp('/authcallback');
    expect(await screen.findByRole('heading', { name: 'Login Failed' })).toBeVisible();
  });

  test.each([
    ['a lost connection', new TypeError('Failed to fetch'), /We can’t reach the sign-in service/],
    [
      'a slow server',
      Object.assign(new Error('Network timed out'), { name: 'ErrorTimeout' }),
      /We can’t reach the sign-in service/,
    ],
    ['a canceled sign-in', new Error('No matching state'), /The sign-in was canceled/],
  ])('after %s says why, and returns to Magic Fix with the next try', async (_, error, reason) => {
    window.history.replaceState(null, '', '/authcallback-magic?code=1&state=2');
    onTestFinished(() => window.history.replaceState(null, '', '/'));
    vi.spyOn(UserManager.prototype, 'signinCallback').mockRejectedValue(error);
    const { router } = renderApp('/authcallback-magic');
    expect(await screen.findByText(reason)).toBeVisible();
    await userEvent.click(screen.getByRole('link', { name: 'Try again' }));
    expect(router.state.location).toMatchObject({ pathname: '/login', state: '/magic' });
  });

  test('that failed goes on once another tab has signed in', async () => {
    window.history.replaceState(null, '', '/authcallback?code=1&state=2');
    onTestFinished(() => window.history.replaceState(null, '', '/'));
    vi.spyOn(UserManager.prototype, 'signinCallback').mockRejectedValue(new TypeError('Failed to fetch'));
    const { api, router } = renderApp('/authcallback');
    expect(await screen.findByRole('heading', { name: 'Login Failed' })).toBeVisible();
    storeSession(api.config.identity);
    act(() => void window.dispatchEvent(new Event('storage')));
    await waitFor(() => expect(router.state.location.pathname).toBe('/dashboard'));
  });

  test('asks a visitor of Magic Fix to log in', async () => {
    renderApp('/magic');
    expect(await screen.findByRole('heading', { name: 'Magic Fix requires logging in' })).toBeVisible();
  });
});

describe('the account menu', () => {
  test('links to the checkouts and the account, and logs out', async () => {
    renderApp('/dashboard', { signedIn: true });
    await userEvent.click(await screen.findByRole('button', { name: 'ada@example.com' }));
    expect(await screen.findByRole('menuitem', { name: 'Checkouts' })).toHaveAttribute('href', '/checkouts');
    expect(screen.getByRole('menuitem', { name: 'Account' })).toHaveAttribute('href', '/account');
    expect(screen.getByRole('menuitem', { name: 'Logout' })).toBeInTheDocument();
  });
});
