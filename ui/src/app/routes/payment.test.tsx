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
const UNCHECKED = /Your payment could not be checked/;

const withOrders = (...checkouts: ReturnType<typeof aCheckout>[]) =>
  Object.assign(new MockApi(), { checkouts, config: aConfig({ features: { payments: true } }) });

const addressOf = ({ router }: ReturnType<typeof renderApp>) =>
  router.state.location.pathname + router.state.location.search;

const main = () => screen.getByRole('main');

describe('coming back from the payment page', () => {
  test('whoever has paid is thanked, and the new credits are shown', async () => {
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

  test('the credits are asked for again, even when they were known before', async () => {
    const api = withOrders(anOpenCheckout());
    const { router } = renderApp('/pricing', { api, signedIn: true });
    await screen.findByRole('link', { name: 'credits 20' });
    api.pay('cs_checkout-1');
    await router.navigate(RETURN);
    expect(await screen.findByRole('link', { name: 'credits 40' })).toBeVisible();
  });

  test('whoever pays later is told that the credits will come, and sees it when they do', async () => {
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

  test('a payment that never came is not thanked for', async () => {
    renderApp(RETURN, { api: withOrders(anOpenCheckout({ status: 'failed' })), signedIn: true });
    expect(await screen.findByRole('heading', { name: 'The payment did not go through' })).toBeVisible();
    expect(screen.queryByText(/confirmation email/)).toBeNull();
  });

  test('an open payment leads to where it is continued', async () => {
    const app = renderApp(RETURN, { api: withOrders(anOpenCheckout()), signedIn: true });
    expect(await screen.findByRole('heading', { name: OPEN })).toBeVisible();
    expect(addressOf(app)).toBe(CHECKOUT);
    expect(app.api.calls.filter((call) => call.includes('session-status'))).toHaveLength(1);
  });

  test.each([
    ['an expired payment', RETURN],
    ["somebody else's payment", '/return?session_id=cs_other'],
  ])('nothing is shown for %s', async (_, address) => {
    const api = withOrders(anOpenCheckout({ status: 'expired' }));
    const app = renderApp(address, { api, signedIn: true });
    await waitFor(() => expect(api.calls.some((call) => call.includes('session-status'))).toBe(true));
    await waitFor(() => expect(main()).toHaveTextContent(/^$/));
    expect(addressOf(app)).toBe(address);
    expect(screen.getByRole('link', { name: 'Privacy Policy' })).toBeVisible();
  });

  test('nothing is shown, and nothing asked, without a payment', async () => {
    const { api } = renderApp('/return', { signedIn: true });
    await screen.findByRole('link', { name: 'credits 20' });
    await waitFor(() => expect(main()).toHaveTextContent(/^$/));
    expect(api.calls.filter((call) => call.includes('/payments/'))).toEqual([]);
  });

  test('says that it is looking', async () => {
    renderApp(RETURN, { signedIn: true });
    server.use(http.get('*/api/payments/session-status/:id', () => delay('infinite')));
    expect(await screen.findByText('Checking your payment…')).toBeVisible();
  });

  test('a payment that cannot be checked is not lost, and is checked again when asked', async () => {
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

describe('a payment that was begun', () => {
  test('shows the pack, the way on and the way to another', async () => {
    renderApp(CHECKOUT, { api: withOrders(anOpenCheckout({ credits: 55 })), signedIn: true });
    expect(await screen.findByRole('heading', { name: OPEN })).toBeVisible();
    expect(screen.getByRole('region', { name: 'Your pack' })).toHaveTextContent('Most popular55 credits$5');
    expect(screen.getByRole('link', { name: 'Continue payment' })).toHaveAttribute(
      'href',
      'http://pay.test/cs_checkout-1',
    );
    expect(screen.getByRole('link', { name: 'Choose another pack' })).toHaveAttribute('href', '/pricing');
  });

  test('once it is paid it leads to the thanks', async () => {
    const app = renderApp(CHECKOUT, { api: withOrders(aCheckout()), signedIn: true });
    expect(await screen.findByRole('heading', { name: THANKS })).toBeVisible();
    expect(addressOf(app)).toBe(RETURN);
  });

  test.each([
    ['has expired', CHECKOUT, [anOpenCheckout({ status: 'expired' })]],
    ['belongs to somebody else', '/checkout?session_id=cs_other', [anOpenCheckout()]],
    ['is not there', '/checkout', [aCheckout()]],
  ])('leads to the packs where it %s', async (_, address, orders) => {
    const app = renderApp(address, { api: withOrders(...orders), signedIn: true });
    expect(await screen.findByRole('heading', { name: 'Flexible Pricing. Full Control' })).toBeVisible();
    expect(addressOf(app)).toBe('/pricing');
  });

  test('without a name it is the newest that is still open', async () => {
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

  test('an order that is newer than the list of before is found', async () => {
    const api = withOrders();
    const { router } = renderApp('/checkouts', { api, signedIn: true });
    await screen.findByText('No orders to show');
    api.checkouts = [anOpenCheckout()];
    await router.navigate('/checkout');
    expect(await screen.findByRole('heading', { name: OPEN })).toBeVisible();
  });

  test('holds its place while it is on its way', async () => {
    renderApp(CHECKOUT, { signedIn: true });
    server.use(http.get('*/api/payments/session-status/:id', () => delay('infinite')));
    expect(await screen.findByRole('status', { name: 'Loading the payment' })).toBeVisible();
  });

  test('where nothing can be loaded it says so, and tries again when asked', async () => {
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
