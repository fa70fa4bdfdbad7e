import { screen, waitFor } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { UserManager } from 'oidc-client-ts';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { breakGet } from '@/testing/break-get';
import { aConfig, anImage } from '@/testing/builders';
import { MockApi } from '@/testing/mock-api';
import { renderApp } from '@/testing/render-app';

// jsdom lays out nothing and cannot scroll.
const original = Element.prototype.scrollIntoView;
afterEach(() => {
  vi.restoreAllMocks();
  Element.prototype.scrollIntoView = original;
});

describe('the start page of Magic Fix', () => {
  test('shows a user the image picker', async () => {
    const api = Object.assign(new MockApi(), { images: [anImage()] });
    const { router } = renderApp('/magic', { api, signedIn: true });
    await userEvent.click(await screen.findByRole('button', { name: /^Image of/ }));
    await userEvent.click(await screen.findByRole('button', { name: 'Select' }));
    await waitFor(() => expect(router.state.location.pathname).toBe('/magic/image-1'));
  });

  test('brings each image that is chosen into sight, with the button to go on', async () => {
    const shown: (string | null)[] = [];
    Element.prototype.scrollIntoView = vi.fn(function (this: Element) {
      if (this.textContent?.includes('Select'))
        shown.push(this.querySelector('img')?.getAttribute('alt') ?? null);
    });
    const images = [anImage({ name: 'one.jpg' }), anImage({ id: 'image-2', name: 'two.jpg' })];
    renderApp('/magic', { api: Object.assign(new MockApi(), { images }), signedIn: true });
    await userEvent.click(await screen.findByRole('button', { name: 'one.jpg' }));
    await userEvent.click(screen.getByRole('button', { name: 'two.jpg' }));
    expect(shown).toEqual(['one.jpg', 'two.jpg']);
  });

  test('moves the focus to the button that goes on, and back when that is canceled', async () => {
    const api = Object.assign(new MockApi(), { images: [anImage({ name: 'one.jpg' })] });
    renderApp('/magic', { api, signedIn: true });
    (await screen.findByRole('button', { name: 'one.jpg' })).focus();
    await userEvent.keyboard('{Enter}');
    expect(screen.getByRole('button', { name: 'Select' })).toHaveFocus();
    await userEvent.tab({ shift: true });
    await userEvent.keyboard('{Enter}');
    expect(screen.getByRole('button', { name: 'one.jpg' })).toHaveFocus();
  });

  test('keeps the search field with the text and the focus if a search fails', async () => {
    const images = Array.from({ length: 10 }, (_, index) =>
      anImage({ id: `${index}`, name: `${index}.jpg` }),
    );
    renderApp('/magic', { api: Object.assign(new MockApi(), { images }), signedIn: true });
    const field = await screen.findByRole('searchbox');
    const repair = breakGet('*/api/images');
    await userEvent.type(field, '7');
    expect(await screen.findByText('Failed to load images. Please try again later')).toBeVisible();
    expect(screen.getByRole('searchbox')).toHaveValue('7');
    expect(screen.getByRole('searchbox')).toHaveFocus();
    repair();
    await userEvent.keyboard('.');
    expect(await screen.findByText('1 image matches “7.”')).toBeVisible();
    expect(screen.getByRole('searchbox')).toHaveFocus();
  });

  test('shows a visitor a login and five examples', async () => {
    renderApp('/magic');
    expect(await screen.findByRole('heading', { name: 'Magic Fix requires logging in' })).toBeVisible();
    expect(screen.getByRole('button', { name: 'Login' })).toBeEnabled();
    const tabs = await screen.findAllByRole('tab');
    expect(tabs.map(({ textContent }) => textContent)).toEqual([
      'Edit Details',
      'Restore Images',
      'Remove Details',
      'Enhance Details',
      'Add Details',
    ]);
    // Not the one of the demo model.
    expect(screen.getByRole('tabpanel', { name: 'Restore Images' })).toHaveTextContent(
      '“restore the scratches”',
    );
    await userEvent.click(screen.getByRole('tab', { name: 'Remove Details' }));
    expect(screen.getByRole('tabpanel', { name: 'Remove Details' })).toHaveTextContent('“remove the towers”');
    await userEvent.keyboard('{ArrowRight}');
    expect(screen.getByRole('tab', { name: 'Enhance Details' })).toHaveFocus();
    // Up and down scroll the page.
    await userEvent.keyboard('{ArrowDown}{ArrowUp}{ArrowUp}');
    expect(screen.getByRole('tab', { name: 'Enhance Details' })).toHaveFocus();
    await userEvent.keyboard('{End}{ArrowRight}');
    expect(screen.getByRole('tab', { name: 'Edit Details' })).toHaveAttribute('aria-selected', 'true');
  });

  test('asks no visitor to log in if Magic Fix is not installed', async () => {
    const config = aConfig();
    config.tools = config.tools.filter(({ tool }) => tool !== 'magic-fix');
    renderApp('/magic', { api: Object.assign(new MockApi(), { config }) });
    expect(
      await screen.findByRole('heading', { name: 'Magic Fix is not installed on this server yet' }),
    ).toBeVisible();
    expect(screen.queryByRole('button', { name: 'Login' })).toBeNull();
  });

  test('says that the browser blocks what a sign-in needs', async () => {
    vi.spyOn(UserManager.prototype, 'signinRedirect').mockRejectedValueOnce(
      new DOMException('Access is denied for this document.', 'SecurityError'),
    );
    renderApp('/magic');
    await userEvent.click(await screen.findByRole('button', { name: 'Login' }));
    expect(await screen.findByText(/^Your browser blocks site data/)).toBeVisible();
  });

  test('starts one sign-in at a time, and forgets why the last one failed', async () => {
    const unreachable = 'We can’t reach the sign-in service. Please try again later.';
    const redirect = vi.spyOn(UserManager.prototype, 'signinRedirect');
    redirect.mockRejectedValueOnce(new TypeError('Failed to fetch'));
    redirect.mockReturnValueOnce(new Promise(() => {}));
    renderApp('/magic');
    const login = await screen.findByRole('button', { name: 'Login' });
    await userEvent.click(login);
    expect(await screen.findByText(unreachable)).toBeVisible();
    await userEvent.click(login);
    await userEvent.click(login);
    expect(login).toHaveAttribute('aria-busy', 'true');
    expect(screen.queryByText(unreachable)).toBeNull();
    await waitFor(() => expect(redirect).toHaveBeenCalledTimes(2));
  });
});
