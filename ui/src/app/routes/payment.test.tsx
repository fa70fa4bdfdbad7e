import { act, screen, waitFor } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { delay, HttpResponse, http } from 'msw';
import { describe, expect, test, vi } from 'vitest';
import { aCheckout, aConfig, anOpenCheckout } from '@/testing/builders';
import { MockApi } from '@/testing/mock-api';
import { renderApp } from '@/testing/render-app';
import { server } from '@/testing/server';

const RETURN = '/return?session_id=cs_checkout-1';
const CHECKOUT = '/checkout?session_id=cs_checkout-1';
const THANKS = 'Thank you for your order';
const OPEN = 'Your payment is not finished';
const UNCHECKED = /We could not check your payment/;

const withOrders = (...checkouts: ReturnType<typeof aCheckout>[]) =>
  Object.assign(new MockApi(), {
    checkouts,
    config: aConfig({ features: { payments: true, heic: true, avif: true } }),
  });

const addressOf = ({ router }: ReturnType<typeof renderApp>) =>
  router.state.location.pathname + router.state.location.search;

const main = () => screen.getByRole('main');

describe('the return from the payment page', () => {
  test('thanks for a payment and shows the new credits', async () => {
    const api = withOrders(anOpenCheckout());
    api.pay('cs_checkout-1');
    renderApp(RETURN, { api, signedIn: true });
    expect(await screen.findByRole('heading', { name: THANKS })).toBeVisible();
    expect(main()).toHaveTextContent('A confirmation email will be sent to ada@example.com.');
    expect(screen.getByText('20 credits were added to your account.')).toBeVisible();
    expect(await screen.findByRole('link', { name: 'credits 40' })).toBeVisible();
    expect(screen.getByRole('link', { name: 'See the order' })).toHaveAttribute(
      'href',
      '/checkouts/checkout-1',
    );
  });

  test('refetches cached credits', async () => {
    const api = withOrders(anOpenCheckout());
    const { router } = renderApp('/pricing', { api, signedIn: true });
    await screen.findByRole('link', { name: 'credits 20' });
    api.pay('cs_checkout-1');
    await router.navigate(RETURN);
    expect(await screen.findByRole('link', { name: 'credits 40' })).toBeVisible();
  });

  test('says that credits will follow a delayed payment, and shows them when it arrives', async () => {
    vi.useFakeTimers({ shouldAdvanceTime: true });
    try {
      const api = withOrders(anOpenCheckout({ status: 'unpaid', email: 'ada@example.com' }));
      renderApp(RETURN, { api, signedIn: true });
      expect(await screen.findByText(/^Your payment is on its way/)).toBeVisible();
      api.pay('cs_checkout-1');
      await act(() => vi.advanceTimersByTimeAsync(15_000));
      expect(await screen.findByText('20 credits were added to your account.')).toBeVisible();
      expect(await screen.findByRole('link', { name: 'credits 40' })).toBeVisible();
    } finally {
      vi.useRealTimers();
    }
  });

  test('does not thank for a failed payment', async () => {
    renderApp(RETURN, { api: withOrders(anOpenCheckout({ status: 'failed' })), signedIn: true });
    expect(await screen.findByRole('heading', { name: 'The payment did not go through' })).toBeVisible();
    expect(screen.queryByText(/confirmation email/)).toBeNull();
  });

  test('redirects an open payment to the checkout', async () => {
    const app = renderApp(RETURN, { api: withOrders(anOpenCheckout()), signedIn: true });
    expect(await screen.findByRole('heading', { name: OPEN })).toBeVisible();
    expect(addressOf(app)).toBe(CHECKOUT);
    expect(app.api.calls.filter((call) => call.includes('session-status'))).toHaveLength(1);
  });

  test.each([
    ['an expired payment', RETURN],
    ["another user's payment", '/return?session_id=cs_other'],
  ])('is empty for %s', async (_, address) => {
    const api = withOrders(anOpenCheckout({ status: 'expired' }));
    const app = renderApp(address, { api, signedIn: true });
    await waitFor(() => expect(api.calls.some((call) => call.includes('session-status'))).toBe(true));
    await waitFor(() => expect(main()).toHaveTextContent(/^$/));
    expect(addressOf(app)).toBe(address);
    expect(screen.getByRole('link', { name: 'Privacy Policy' })).toBeVisible();
  });

  test('is empty without a session id, and calls no payments API', async () => {
    const { api } = renderApp('/return', { signedIn: true });
    await screen.findByRole('link', { name: 'credits 20' });
    await waitFor(() => expect(main()).toHaveTextContent(/^$/));
    expect(api.calls.filter((call) => call.includes('/payments/'))).toEqual([]);
  });

  test('shows a spinner while loading', async () => {
    renderApp(RETURN, { signedIn: true });
    server.use(http.get('*/api/payments/session-status/:id', () => delay('infinite')));
    expect(await screen.findByText('Checking your payment…')).toBeVisible();
  });

  test('says that an unchecked payment is not lost, and can check it again', async () => {
    const api = withOrders(aCheckout());
    renderApp(RETURN, { api, signedIn: true });
    server.use(
      http.get('*/api/payments/session-status/:id', () => new HttpResponse(null, { status: 503 }), {
        once: true,
      }),
    );
    expect(await screen.findByText(UNCHECKED)).toBeVisible();
    await userEvent.click(screen.getByRole('button', { name: 'Try again' }));
    expect(await screen.findByRole('heading', { name: THANKS })).toBeVisible();
  });
});

describe('the checkout of an open payment', () => {
  test('shows the pack and links to its payment and the other packs', async () => {
    renderApp(CHECKOUT, { api: withOrders(anOpenCheckout({ credits: 55 })), signedIn: true });
    expect(await screen.findByRole('heading', { name: OPEN })).toBeVisible();
    expect(screen.getByRole('region', { name: 'Your pack' })).toHaveTextContent('Most popular55 credits$5');
    expect(screen.getByRole('link', { name: 'Continue payment' })).toHaveAttribute(
      'href',
      'http://pay.test/cs_checkout-1',
    );
    expect(screen.getByRole('link', { name: 'Choose another pack' })).toHaveAttribute('href', '/pricing');
  });

  test('redirects to the thank-you page once paid', async () => {
    const app = renderApp(CHECKOUT, { api: withOrders(aCheckout()), signedIn: true });
    expect(await screen.findByRole('heading', { name: THANKS })).toBeVisible();
    expect(addressOf(app)).toBe(RETURN);
  });

  test.each([
    ['has expired', CHECKOUT, [anOpenCheckout({ status: 'expired' })]],
    ['belongs to another user', '/checkout?session_id=cs_other', [anOpenCheckout()]],
    ['does not exist', '/checkout', [aCheckout()]],
  ])('redirects to the packs if it %s', async (_, address, orders) => {
    const app = renderApp(address, { api: withOrders(...orders), signedIn: true });
    expect(await screen.findByRole('heading', { name: 'Flexible Pricing. Full Control' })).toBeVisible();
    expect(addressOf(app)).toBe('/pricing');
  });

  test('continues the newest open payment if the URL names none', async () => {
    const api = withOrders(
      aCheckout({ id: 'paid' }),
      anOpenCheckout({ id: 'newer' }),
      anOpenCheckout({ id: 'older' }),
    );
    renderApp('/checkout', { api, signedIn: true });
    expect(await screen.findByRole('link', { name: 'Continue payment' })).toHaveAttribute(
      'href',
      'http://pay.test/cs_newer',
    );
  });

  test('finds an order that is newer than the cached list', async () => {
    const api = withOrders();
    const { router } = renderApp('/checkouts', { api, signedIn: true });
    await screen.findByText('No orders to show');
    api.checkouts = [anOpenCheckout()];
    await router.navigate('/checkout');
    expect(await screen.findByRole('heading', { name: OPEN })).toBeVisible();
  });

  test('shows a placeholder while loading', async () => {
    renderApp(CHECKOUT, { signedIn: true });
    server.use(http.get('*/api/payments/session-status/:id', () => delay('infinite')));
    expect(await screen.findByRole('status', { name: 'Loading the payment' })).toBeVisible();
  });

  test('reports failures and can be loaded again', async () => {
    renderApp('/checkout', { api: withOrders(anOpenCheckout()), signedIn: true });
    const failure = () => new HttpResponse(null, { status: 503 });
    server.use(
      http.get('*/api/checkouts/', failure, { once: true }),
      http.get('*/api/payments/session-status/:id', failure, { once: true }),
    );
    expect(await screen.findByText('Failed to load checkouts')).toBeVisible();
    await userEvent.click(screen.getByRole('button', { name: 'Try again' }));
    expect(await screen.findByText(UNCHECKED)).toBeVisible();
    await userEvent.click(screen.getByRole('button', { name: 'Try again' }));
    expect(await screen.findByRole('heading', { name: OPEN })).toBeVisible();
  });
});
