import { act, screen, waitFor, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { delay, HttpResponse, http } from 'msw';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import { saveFile } from '@/lib/download';
import { queryKeys } from '@/lib/query-keys';
import { storeSignIn } from '@/lib/stored-user';
import { breakGet } from '@/testing/break-get';
import { anApiKey, aStorage } from '@/testing/builders';
import { MockApi } from '@/testing/mock-api';
import { renderApp } from '@/testing/render-app';
import { server } from '@/testing/server';
import { aSignInPage } from '@/testing/sign-in-page';

// jsdom cannot save files.
vi.mock('@/lib/download', () => ({ saveFile: vi.fn() }));

const button = (name: string) => screen.findByRole('button', { name });

describe('the storage', () => {
  const used = (change: Parameters<typeof aStorage>[0]) =>
    Object.assign(new MockApi(), { storage: aStorage(change) });

  test('shows what is used of the limits', async () => {
    const api = used({ bytes: 12.5 * 1024 ** 2, pictures: 25_000 });
    renderApp('/account', { api, signedIn: true });
    expect(await screen.findByText('12.5 MB of 100 GB · 25,000 of 100,000 pictures')).toBeVisible();
    expect(screen.getByRole('progressbar', { name: 'Storage used' })).toHaveAttribute('aria-valuenow', '25');
  });

  test('has no bar without limits', async () => {
    const api = used({ bytes: 1_500, pictures: 1, maxBytes: null, maxPictures: null });
    renderApp('/account', { api, signedIn: true });
    expect(await screen.findByText('2 kB · 1 picture')).toBeVisible();
    expect(screen.queryByRole('progressbar', { name: 'Storage used' })).toBeNull();
  });

  test('can be loaded again after a failure', async () => {
    renderApp('/account', { api: used({ bytes: 1_500, pictures: 1 }), signedIn: true });
    const repair = breakGet('*/api/user/storage');
    expect(await screen.findAllByText('Failed to load your storage usage')).not.toHaveLength(0);
    repair();
    await userEvent.click(await button('Try again'));
    expect(await screen.findByText(/1 of 100,000 pictures/)).toBeVisible();
    // The button has gone.
    expect(screen.getByRole('region', { name: 'Storage' })).toHaveFocus();
  });
});

describe('the data export', () => {
  test('downloads a file', async () => {
    vi.mocked(saveFile).mockReset();
    renderApp('/account', { signedIn: true });
    await userEvent.click(await button('Export my data'));
    await waitFor(() => expect(saveFile).toHaveBeenCalled());
    const [blob, name] = vi.mocked(saveFile).mock.calls[0] ?? [];
    expect(name).toBe('retouch-account.json');
    expect(JSON.parse(String(await blob?.text()))).toMatchObject({ user: { email: 'ada@example.com' } });
  });

  test('reports a failure', async () => {
    renderApp('/account', { signedIn: true });
    server.use(http.get('*/api/user/export', () => new HttpResponse(null, { status: 500 })));
    await userEvent.click(await button('Export my data'));
    expect(await screen.findByText('Failed to export your data, try again later')).toBeVisible();
    expect(await button('Export my data')).toBeEnabled();
  });

  test('does not save the page of a network that asks to sign in', async () => {
    vi.mocked(saveFile).mockReset();
    renderApp('/account', { signedIn: true });
    server.use(http.get('*/api/user/export', aSignInPage));
    await userEvent.click(await button('Export my data'));
    expect(await screen.findByText('Failed to export your data, try again later')).toBeVisible();
    expect(saveFile).not.toHaveBeenCalled();
  });
});

describe('API keys', () => {
  const field = () => screen.findByRole('textbox', { name: 'Name of a new key' });
  const keys = (...apiKeys: ReturnType<typeof anApiKey>[]) => Object.assign(new MockApi(), { apiKeys });

  test('are listed with name, prefix and dates', async () => {
    const api = keys(anApiKey(), anApiKey({ id: 'key-2', name: 'shop', lastUsedAt: '2026-11-21T08:00:00Z' }));
    renderApp('/account', { api, signedIn: true });
    const list = await screen.findByRole('list', { name: 'Your API keys' });
    const [first, second] = within(list).getAllByRole('listitem');
    expect(first).toHaveTextContent(/nightly batchrt_kJ2v9x… · created .* · never used/);
    expect(second).toHaveTextContent(/shop.*last used/);
  });

  test('a new key is shown once, with a Copy button', async () => {
    const person = userEvent.setup();
    renderApp('/account', { signedIn: true });
    expect(await screen.findByText('No keys yet')).toBeVisible();
    await person.type(await field(), ' my shop {Enter}');
    const key = await screen.findByRole('textbox', { name: 'Your new key “my shop”' });
    expect(key).toHaveValue('rt_kJ2v9x-the-whole-key');
    expect(key).toHaveFocus();
    await person.click(screen.getByRole('button', { name: 'Copy' }));
    expect(await screen.findByText('Copied')).toBeVisible();
    expect(await navigator.clipboard.readText()).toBe('rt_kJ2v9x-the-whole-key');
    expect(await screen.findByRole('list', { name: 'Your API keys' })).toHaveTextContent('my shop');
    expect(await field()).toHaveValue('');

    await person.click(screen.getByRole('button', { name: 'Done' }));
    expect(screen.queryByDisplayValue('rt_kJ2v9x-the-whole-key')).toBeNull();
  });

  test('a double click creates one key', async () => {
    const api = new MockApi();
    renderApp('/account', { api, signedIn: true });
    await userEvent.type(await field(), 'shop');
    const create = screen.getByRole('button', { name: 'Create key' });
    // Both before the next render.
    act(() => {
      create.click();
      create.click();
    });
    expect(await screen.findByRole('textbox', { name: 'Your new key “shop”' })).toBeVisible();
    expect(api.apiKeys).toHaveLength(1);
  });

  test('a key whose answer was lost appears in the list', async () => {
    const api = new MockApi();
    renderApp('/account', { api, signedIn: true });
    server.use(
      http.post('*/api/keys', () => {
        api.apiKeys = [anApiKey({ name: 'shop' })];
        return HttpResponse.error();
      }),
    );
    await userEvent.type(await field(), 'shop{Enter}');
    expect(await screen.findByText('The connection was lost. Please try again.')).toBeVisible();
    expect(await screen.findByRole('list', { name: 'Your API keys' })).toHaveTextContent('shop');
  });

  test('without clipboard access, the key is selected and a hint explains how to copy it', async () => {
    const person = userEvent.setup();
    renderApp('/account', { signedIn: true });
    await person.type(await field(), 'shop{Enter}');
    const key = await screen.findByRole<HTMLInputElement>('textbox', { name: 'Your new key “shop”' });
    vi.spyOn(navigator.clipboard, 'writeText').mockRejectedValue(new Error('not allowed'));
    await person.click(screen.getByRole('button', { name: 'Copy' }));
    expect(await screen.findByText('Press Ctrl+C or ⌘C to copy it')).toBeVisible();
    expect(key.selectionEnd).toBe(key.value.length);
    expect(key).toHaveFocus();
  });

  test('a key without a name is rejected before the call', async () => {
    const { api } = renderApp('/account', { signedIn: true });
    await userEvent.type(await field(), '  {Enter}');
    expect(await screen.findByText('A key needs a name')).toBeVisible();
    expect(await field()).toHaveFocus();
    expect(api.calls).not.toContain('POST /api/keys');
  });

  test.each([
    [
      422,
      { detail: 'You already have 20 keys. Revoke one first.' },
      'You already have 20 keys. Revoke one first.',
    ],
    [500, { detail: 'Something broke' }, 'Failed to create the key, try again later'],
  ])('explains why no key was created after a %i', async (status, body, sentence) => {
    renderApp('/account', { signedIn: true });
    server.use(http.post('*/api/keys', () => HttpResponse.json(body, { status })));
    await userEvent.type(await field(), 'shop{Enter}');
    expect(await screen.findByText(sentence)).toBeVisible();
    expect(await field()).toHaveValue('shop');
    expect(await field()).toHaveAccessibleDescription(sentence);
  });

  test('a key is revoked after a confirmation', async () => {
    const { api } = renderApp('/account', { api: keys(anApiKey()), signedIn: true });
    await userEvent.click(await button('Revoke nightly batch'));
    const question = await screen.findByRole('alertdialog', { name: 'Revoke “nightly batch”?' });
    expect(api.apiKeys).toHaveLength(1);
    await userEvent.click(within(question).getByRole('button', { name: 'Revoke' }));
    expect(await screen.findByText('No keys yet')).toBeVisible();
    expect(api.apiKeys).toEqual([]);
  });

  test.each([
    [404, 'No keys yet'],
    [500, 'Failed to revoke the key, try again later'],
  ])('after a revocation answered with %i the page says "%s"', async (status, sentence) => {
    renderApp('/account', { api: keys(anApiKey()), signedIn: true });
    server.use(http.delete('*/api/keys/:id', () => new HttpResponse(null, { status })));
    await userEvent.click(await button('Revoke nightly batch'));
    await userEvent.click(
      within(await screen.findByRole('alertdialog')).getByRole('button', { name: 'Revoke' }),
    );
    expect(await screen.findByText(sentence)).toBeVisible();
  });

  test('show a placeholder while loading', async () => {
    renderApp('/account', { signedIn: true });
    server.use(http.get('*/api/keys', () => delay('infinite')));
    expect(await screen.findByRole('status', { name: 'Loading API keys' })).toBeVisible();
    expect(await field()).toBeEnabled();
  });

  test('can be loaded again after a failure', async () => {
    renderApp('/account', { signedIn: true });
    const repair = breakGet('*/api/keys');
    expect(await screen.findByText('Failed to load API keys')).toBeVisible();
    repair();
    await userEvent.click(await button('Try again'));
    expect(await screen.findByText('No keys yet')).toBeVisible();
  });
});

describe('deleting the account', () => {
  /** When this person last looked at results outlives a sign-out, but not the account. */
  const looks = () => localStorage.getItem('retouch-looks:user-1');
  const recordLooks = () =>
    localStorage.setItem('retouch-looks:user-1', '{"since":"2026-11-20T10:00:00Z","lists":{}}');

  const api = () => Object.assign(new MockApi(), { apiKeys: [anApiKey()] });

  async function ask() {
    await screen.findByRole('link', { name: 'credits 20' });
    await userEvent.click(await button('Delete my account'));
    const dialog = await screen.findByRole('alertdialog', { name: 'Delete your account?' });
    return {
      dialog,
      field: within(dialog).getByRole('textbox'),
      confirm: within(dialog).getByRole('button', { name: 'Delete my account' }),
    };
  }

  function signOutInAnotherTab() {
    const key = Object.keys(localStorage).find((one) => one.startsWith('oidc')) ?? '';
    localStorage.removeItem(key);
    window.dispatchEvent(new StorageEvent('storage', { key }));
  }

  beforeEach(() => {
    server.use(http.get('http://identity.test/*', () => HttpResponse.error()));
  });

  test('another tab says that the user was signed out', async () => {
    renderApp('/account', { api: api(), signedIn: true });
    await ask();
    act(signOutInAnotherTab);
    expect(await screen.findByText('You have been signed out.')).toBeVisible();
    expect(screen.queryByText(/Welcome back/)).toBeNull();
  });

  test('lists what is deleted and what is kept', async () => {
    renderApp('/account', { api: api(), signedIn: true });
    const { dialog } = await ask();
    expect(dialog).toHaveTextContent('all your images and their results');
    expect(dialog).toHaveTextContent('the 20 credits you have left, without a refund');
    expect(dialog).toHaveTextContent('What we keep, without your name or address');
  });

  test.each(['DELETE', 'Ada@Example.com'])('needs "%s" typed, then signs out', async (words) => {
    recordLooks();
    const { api: mock, router } = renderApp('/account', { api: api(), signedIn: true });
    const seen: string[] = [];
    router.subscribe(({ location }) => seen.push(location.pathname));
    const { field, confirm } = await ask();
    expect(confirm).toBeDisabled();
    await userEvent.type(field, words.slice(0, -1));
    expect(confirm).toBeDisabled();
    await userEvent.type(field, words.slice(-1));
    await userEvent.click(confirm);
    expect(await screen.findByRole('heading', { name: 'AI Image Editing Made Simple' })).toBeVisible();
    expect(await screen.findByRole('link', { name: 'Login' })).toBeVisible();
    expect(await screen.findByText('Your account was deleted')).toBeVisible();
    expect(router.state.location.pathname).toBe('/dashboard');
    expect(seen).not.toContain('/login');
    expect(Object.keys(localStorage).filter((key) => key.startsWith('oidc'))).toEqual([]);
    expect(looks()).toBeNull();
    // Further calls with the old token would be refused.
    expect(mock.calls.at(-1)).toBe('DELETE /api/user');
  });

  test.each(['this', 'another'])(
    'is confirmed even if %s tab notices it before the API answers',
    async (tab) => {
      const { api: mock, router } = renderApp('/account', { api: api(), signedIn: true });
      server.use(
        http.get('*/api/events', () => {
          if (!mock.isStreamBroken) return;
          return HttpResponse.json({ code: 'account_deleted', detail: 'It is gone' }, { status: 401 });
        }),
        http.delete('*/api/user', async () => {
          if (tab === 'this') mock.isStreamBroken = true;
          else act(signOutInAnotherTab);
          await waitFor(() => expect(router.state.location.pathname).toBe('/login'), { timeout: 4_000 });
        }),
      );
      const { field } = await ask();
      await userEvent.type(field, 'DELETE{Enter}');
      expect(await screen.findByText('Your account was deleted')).toBeVisible();
      await waitFor(() => expect(router.state.location.pathname).toBe('/dashboard'));
      expect(screen.getAllByText('Your account was deleted')).toHaveLength(1);
    },
  );

  test('is final for calls that this page sends before its answer', async () => {
    const { api: mock, queryClient } = renderApp('/account', { api: api(), signedIn: true });
    await storeSignIn('test-token');
    server.use(
      http.delete('*/api/user', async () => {
        server.use(
          http.get('*/api/user/get', () =>
            HttpResponse.json({ code: 'account_deleted', detail: 'It is gone' }, { status: 401 }),
          ),
        );
        await queryClient.invalidateQueries({ queryKey: queryKeys.user });
      }),
    );
    const { field } = await ask();
    await userEvent.type(field, 'DELETE{Enter}');
    expect(await screen.findByText('Your account was deleted')).toBeVisible();
    expect(mock.calls).not.toContain('POST /api/user');
  });

  test('is said on a public page if it happened elsewhere', async () => {
    recordLooks();
    const { router } = renderApp('/pricing', { api: api(), signedIn: true });
    server.use(
      http.get('*/api/user/get', () =>
        HttpResponse.json({ code: 'account_deleted', detail: 'It is gone' }, { status: 401 }),
      ),
    );
    expect(await screen.findByText('Your account was deleted')).toBeVisible();
    expect(await screen.findByRole('link', { name: 'Login' })).toBeVisible();
    expect(router.state.location.pathname).toBe('/pricing');
    expect(looks()).toBeNull();
  });

  test('does nothing without the typed confirmation or after Cancel', async () => {
    const { api: mock } = renderApp('/account', { api: api(), signedIn: true });
    const { field, dialog } = await ask();
    await userEvent.type(field, 'delete{Enter}');
    await userEvent.click(within(dialog).getByRole('button', { name: 'Cancel' }));
    await waitFor(() => expect(screen.queryByRole('alertdialog')).toBeNull());
    expect(await button('Delete my account')).toHaveFocus();
    expect(mock.calls).not.toContain('DELETE /api/user');
  });

  test('reports a failure and allows a retry', async () => {
    const { router } = renderApp('/account', { api: api(), signedIn: true });
    server.use(http.delete('*/api/user', () => new HttpResponse(null, { status: 503 }), { once: true }));
    const { field, dialog, confirm } = await ask();
    await userEvent.type(field, 'DELETE{Enter}');
    expect(await within(dialog).findByText('Failed to delete your account, try again later')).toBeVisible();
    await userEvent.click(confirm);
    await waitFor(() => expect(router.state.location.pathname).toBe('/dashboard'));
  });
});
