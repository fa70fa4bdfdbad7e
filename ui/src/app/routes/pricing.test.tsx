import { fireEvent, screen, waitFor, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { HttpResponse, http } from 'msw';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import { leavePage } from '@/lib/leave-page';
import { aConfig } from '@/testing/builders';
import { MockApi } from '@/testing/mock-api';
import { renderApp } from '@/testing/render-app';
import { server } from '@/testing/server';

// jsdom cannot navigate.
vi.mock('@/lib/leave-page', () => ({ leavePage: vi.fn() }));

const FAILED = 'Failed to redirect to payment, please try again later';
const LEAVING = 'Taking you to the payment page…';

const aShop = () =>
  Object.assign(new MockApi(), { config: aConfig({ features: { payments: true, heic: true, avif: true } }) });

/** The Choose button of a pack, counted from 0. */
const choose = async (index: number) =>
  (await screen.findAllByRole('button', { name: 'Choose' }))[index] as HTMLElement;

const openedBy = (api: MockApi) => api.calls.filter((call) => call.includes('create-checkout-session'));

beforeEach(() => {
  vi.mocked(leavePage).mockReset().mockResolvedValue();
});

describe('for a visitor', () => {
  test('shows the packs and links each to the sign-up', async () => {
    renderApp('/pricing', { api: aShop() });
    expect(await screen.findByRole('heading', { name: 'Flexible Pricing. Full Control' })).toBeVisible();
    expect(screen.getByText('20 Free Credits for New Users')).toBeVisible();
    const links = await screen.findAllByRole('link', { name: 'Try for free' });
    expect(links.map((link) => link.getAttribute('href'))).toEqual(['/signup', '/signup', '/signup']);
    expect(screen.queryByRole('button', { name: 'Choose' })).toBeNull();
  });
});

describe('for a user', () => {
  test.each([
    [0, 'Cheapest 20 credits', 'POST /api/payments/create-checkout-session-1'],
    [1, 'Most popular 55 credits', 'POST /api/payments/create-checkout-session-2'],
    [2, 'Best Value 180 credits', 'POST /api/payments/create-checkout-session-3'],
  ])('Choose on pack %i opens its payment page', async (index, description, call) => {
    const { api } = renderApp('/pricing', { api: aShop(), signedIn: true });
    const button = await choose(index);
    expect(button).toHaveAccessibleDescription(description);
    await userEvent.click(button);
    await waitFor(() =>
      expect(vi.mocked(leavePage)).toHaveBeenCalledWith(`http://pay.test/${api.checkouts[0]?.session_id}`),
    );
    expect(openedBy(api)).toEqual([call]);
    expect(api.idempotencyKeys[0]).toMatch(/^[0-9a-f-]{36}$/);
  });

  test('keeps the overlay until the browser has left, and removes it for users who come back', async () => {
    let leave = () => {};
    vi.mocked(leavePage).mockReturnValue(new Promise((resolve) => (leave = resolve)));
    renderApp('/pricing', { api: aShop(), signedIn: true });
    await userEvent.click(await choose(0));
    expect(await screen.findByText(LEAVING)).toBeVisible();
    await waitFor(() => expect(leavePage).toHaveBeenCalled());
    expect(screen.getByText(LEAVING)).toBeVisible();
    leave();
    await waitFor(() => expect(screen.queryByText(LEAVING)).toBeNull());
    expect(screen.queryByText(FAILED)).toBeNull();
  });

  test('a double click creates one order', async () => {
    const { api } = renderApp('/pricing', { api: aShop(), signedIn: true });
    const button = await choose(1);
    fireEvent.click(button);
    fireEvent.click(button);
    await waitFor(() => expect(leavePage).toHaveBeenCalled());
    expect(openedBy(api)).toHaveLength(1);
  });

  test.each([
    ['refused', () => new HttpResponse(null, { status: 503 })],
    ['answered without a URL', () => HttpResponse.json({})],
    ['lost', () => HttpResponse.error()],
  ])('says so when the order is %s, and allows another try', async (_, answer) => {
    const { api } = renderApp('/pricing', { api: aShop(), signedIn: true });
    server.use(http.post('*/api/payments/*', answer, { once: true }));
    await userEvent.click(await choose(0));
    expect(await screen.findByText(FAILED)).toBeVisible();
    await waitFor(() => expect(screen.queryByText(LEAVING)).toBeNull());
    expect(leavePage).not.toHaveBeenCalled();

    await userEvent.click(await choose(0));
    await waitFor(() => expect(leavePage).toHaveBeenCalled());
    expect(api.checkouts).toHaveLength(1);
  });

  test('reuses the key after a lost response and a 503, and creates a new one after a refusal', async () => {
    const keys: (string | null)[] = [];
    renderApp('/pricing', { api: aShop(), signedIn: true });
    const answers = [
      () => HttpResponse.error(),
      () => new HttpResponse(null, { status: 503 }),
      () => new HttpResponse(null, { status: 429 }),
    ];
    server.use(
      http.post('*/api/payments/*', ({ request }) => {
        keys.push(request.headers.get('Idempotency-Key'));
        return answers.shift()?.();
      }),
    );
    for (const tries of [1, 2, 3, 4]) {
      await userEvent.click(await choose(0));
      await waitFor(() => expect(keys).toHaveLength(tries));
      await waitFor(() => expect(screen.queryByText(LEAVING)).toBeNull());
    }
    expect(keys[1]).toBe(keys[0]);
    expect(keys[2]).toBe(keys[0]);
    expect(keys[3]).not.toBe(keys[0]);
    // The fourth attempt succeeds; wait, so that it does not leak into the next test.
    await waitFor(() => expect(leavePage).toHaveBeenCalled());
  });

  test('does not pull back a user who has left the page', async () => {
    let answer = () => {};
    const isAnswered = new Promise<void>((resolve) => (answer = resolve));
    const { router } = renderApp('/pricing', { api: aShop(), signedIn: true });
    server.use(
      http.post('*/api/payments/*', async () => {
        await isAnswered;
        return HttpResponse.json({ url: 'http://pay.test/late' });
      }),
    );
    await userEvent.click(await choose(0));
    await screen.findByText(LEAVING);
    await router.navigate('/terms');
    await screen.findByRole('heading', { name: 'Terms of Service' });
    answer();
    // This response arrives after the late one.
    await router.navigate('/checkouts');
    await screen.findByText('No orders to show');
    expect(leavePage).not.toHaveBeenCalled();
    expect(screen.queryByText(FAILED)).toBeNull();
  });

  test('says when payments are off, and shows no Choose buttons', async () => {
    renderApp('/pricing', { signedIn: true });
    expect(await screen.findByText(/This server does not sell credit packs yet/)).toBeVisible();
    const packs = within(screen.getByRole('main')).getAllByRole('heading', { level: 2 }).slice(0, 3);
    expect(packs.map((pack) => pack.textContent)).toEqual(['Cheapest', 'Most popular', 'Best Value']);
    expect(screen.queryByRole('button', { name: 'Choose' })).toBeNull();
  });
});
