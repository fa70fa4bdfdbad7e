import { act, screen, waitFor, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { delay, HttpResponse, http } from 'msw';
import { describe, expect, test, vi } from 'vitest';
import { formatDate } from '@/components/date-time';
import { breakGet } from '@/testing/break-get';
import { aCheckout, aConfig, anOpenCheckout } from '@/testing/builders';
import { MockApi } from '@/testing/mock-api';
import { renderApp } from '@/testing/render-app';
import { server } from '@/testing/server';

const withOrders = (...checkouts: ReturnType<typeof aCheckout>[]) =>
  Object.assign(new MockApi(), {
    checkouts,
    config: aConfig({ features: { payments: true, heic: true, avif: true } }),
  });

/** The value below a card's title. */
const card = (title: string) => screen.getByText(title).nextElementSibling;

describe('the list of orders', () => {
  test('shows date, fulfillment and quantity, and links each row to its order', async () => {
    const made = Date.UTC(2026, 9, 3, 8, 30);
    const api = withOrders(
      anOpenCheckout({ id: 'new', credits: 55 }),
      aCheckout({ id: 'old', created_at: made / 1000 }),
    );
    renderApp('/checkouts', { api, signedIn: true });
    await screen.findByText('20 credits');
    const table = screen.getByRole('table');
    const [head, first, second] = within(table).getAllByRole('row');
    const cells = (row: HTMLElement | undefined, role: 'cell' | 'columnheader') =>
      within(row as HTMLElement)
        .getAllByRole(role)
        .map(({ textContent }) => textContent);
    expect(cells(head, 'columnheader')).toEqual(['Date', 'Fulfilled', 'Quantity']);
    expect(cells(first, 'cell').slice(1)).toEqual(['Not completed$2Continue', '55 credits']);
    expect(cells(second, 'cell')).toEqual([formatDate(new Date(made)), 'Fulfilled', '20 credits']);
    const links = within(table).getAllByRole('link');
    expect(links.map((link) => link.getAttribute('href'))).toEqual([
      '/checkouts/new',
      '/checkout?session_id=cs_new',
      '/checkouts/old',
    ]);
  });

  test('an abandoned payment is not completed; only an open one continues', async () => {
    const api = withOrders(
      anOpenCheckout({ id: 'expired', status: 'expired', total_amount: 1500 }),
      anOpenCheckout({ id: 'unpaid', status: 'unpaid' }),
    );
    renderApp('/checkouts', { api, signedIn: true });
    await screen.findByText('Not completed');
    const [expired, unpaid] = screen.getAllByRole('row').slice(-2);
    expect(expired).toHaveTextContent('Not completed$15');
    expect(screen.queryByRole('link', { name: 'Continue' })).toBeNull();
    // A pending bank transfer is not an abandoned payment.
    expect(unpaid).toHaveTextContent('Not fulfilled');
  });

  test('shows placeholder rows while loading', async () => {
    renderApp('/checkouts', { signedIn: true });
    server.use(http.get('*/api/checkouts/', () => delay('infinite')));
    const place = await screen.findByRole('status', { name: 'Loading checkouts' });
    expect(within(place).getByRole('columnheader', { name: 'Date' })).toBeVisible();
  });

  test('says when there are none, and links to the packs', async () => {
    renderApp('/checkouts', { api: withOrders(), signedIn: true });
    expect(await screen.findByText('No orders to show')).toBeVisible();
    expect(screen.getByRole('link', { name: 'See the packs' })).toHaveAttribute('href', '/pricing');
  });

  test('says Failed to load checkouts, and can be loaded again', async () => {
    renderApp('/checkouts', { api: withOrders(aCheckout()), signedIn: true });
    const repair = breakGet('*/api/checkouts/');
    expect(await screen.findByText('Failed to load checkouts')).toBeVisible();
    repair();
    await userEvent.click(screen.getByRole('button', { name: 'Try again' }));
    expect(await screen.findByText('20 credits')).toBeVisible();
  });
});

describe('one order', () => {
  test('shows its state, date, quantity, buyer and price', async () => {
    renderApp('/checkouts/checkout-1', {
      api: withOrders(aCheckout({ email: 'bob@example.com' })),
      signedIn: true,
    });
    expect(await screen.findByRole('heading', { name: 'Order Details' })).toBeVisible();
    expect(await screen.findByText('paid')).toBeVisible();
    expect(screen.getByText('Fulfilled')).toBeVisible();
    expect(card('Date')).toHaveTextContent(formatDate(new Date(Date.UTC(2026, 10, 20, 10))));
    expect(card('Quantity')).toHaveTextContent('20 Credits');
    expect(card('Customer Email')).toHaveTextContent('bob@example.com');
    expect(card('Amount')).toHaveTextContent('$2');
    expect(screen.queryByText(/taken back/)).toBeNull();
    expect(screen.queryByRole('link', { name: 'Continue payment' })).toBeNull();
    await userEvent.click(screen.getByRole('link', { name: 'Back to Checkouts' }));
    expect(await screen.findByRole('heading', { name: 'Checkouts' })).toBeVisible();
  });

  test('shows Unknown for missing values, and links an open order to its payment', async () => {
    const order = anOpenCheckout({ total_amount: null, currency: null });
    renderApp('/checkouts/checkout-1', { api: withOrders(order), signedIn: true });
    expect(await screen.findByText('open')).toBeVisible();
    expect(screen.getByText('To be fulfilled')).toBeVisible();
    expect(card('Amount')).toHaveTextContent('Unknown');
    expect(card('Customer Email')).toHaveTextContent('Unknown');
    expect(screen.getByRole('link', { name: 'Continue payment' })).toHaveAttribute(
      'href',
      '/checkout?session_id=cs_checkout-1',
    );
  });

  test.each([
    ['refunded', 12, '12 of these 20 credits were taken back because the payment was refunded.'],
    ['disputed', 1, '1 of these 20 credits was taken back because the payment was disputed.'],
  ] as const)('says how many credits a %s order has lost', async (status, taken, sentence) => {
    const order = aCheckout({ status, credits_taken_back: taken });
    renderApp('/checkouts/checkout-1', { api: withOrders(order), signedIn: true });
    expect(await screen.findByText(sentence)).toBeVisible();
    expect(screen.getByText(status)).toBeVisible();
  });

  test('does not show a missing order or one of another user', async () => {
    renderApp('/checkouts/other', { api: withOrders(aCheckout()), signedIn: true });
    expect(
      await screen.findByText('This order does not exist, or it belongs to another account.'),
    ).toBeVisible();
    expect(await screen.findByText('Failed to load checkout')).toBeVisible();
    expect(screen.getByRole('link', { name: 'Back to Checkouts' })).toBeVisible();
    expect(screen.queryByRole('button', { name: 'Try again' })).toBeNull();
  });

  test('says Failed to load checkout, and can be loaded again', async () => {
    renderApp('/checkouts/checkout-1', { api: withOrders(aCheckout()), signedIn: true });
    const repair = breakGet('*/api/checkouts/:id', () => HttpResponse.error());
    expect(await screen.findByText('Failed to load checkout')).toBeVisible();
    repair();
    await userEvent.click(screen.getByRole('button', { name: 'Try again' }));
    expect(await screen.findByText('20 Credits')).toBeVisible();
  });

  test('is refetched every three minutes', async () => {
    vi.useFakeTimers({ shouldAdvanceTime: true });
    try {
      const order = anOpenCheckout();
      const { api } = renderApp('/checkouts/checkout-1', { api: withOrders(order), signedIn: true });
      await screen.findByText('To be fulfilled');
      api.checkouts = [aCheckout()];
      await act(() => vi.advanceTimersByTimeAsync(170_000));
      expect(screen.getByText('To be fulfilled')).toBeVisible();
      await act(() => vi.advanceTimersByTimeAsync(10_000));
      await waitFor(() => expect(screen.getByText('Fulfilled')).toBeVisible());
    } finally {
      vi.useRealTimers();
    }
  });
});
