import type { Page } from '@playwright/test';
import { expectAccessible } from './accessible';
import { checkScreen } from './check-screen';
import { signInAsSomeoneNew, startSignedIn } from './sign-in';
import { expect, test } from './test';
import { credits } from './tool';

// The payment page is the local stand-in's. A real provider's page would need a test card.
const thanks = (page: Page) => page.getByRole('heading', { name: 'Thank you for your order' });
const payButton = (page: Page) => page.getByRole('button', { name: /^Pay \$/ });
const onPage = (page: Page, text: string) => page.getByRole('main').getByText(text);

/** Chooses a pack and waits for its payment page. */
async function choose(page: Page, pack: string) {
  await page.goto('/pricing');
  const card = page.getByRole('listitem').filter({ has: page.getByRole('heading', { name: pack }) });
  await card.getByRole('button', { name: 'Choose' }).click();
  await expect(payButton(page)).toBeVisible();
  expect(new URL(page.url()).hostname).toBe('127.0.0.1');
}

test('a new user buys a pack and finds the order', async ({ page }) => {
  const email = await signInAsSomeoneNew(page);
  await expect(credits(page, 20)).toBeVisible();
  await choose(page, 'Cheapest');
  await payButton(page).click();

  await expect(page).toHaveURL(/\/return\?session_id=cs_/);
  await expect(thanks(page)).toBeVisible();
  await expect(onPage(page, email)).toBeVisible();
  await expect(onPage(page, 'A confirmation email will be sent to')).toBeVisible();
  await expect(credits(page, 40)).toBeVisible();
  await checkScreen(page);

  // A reload grants nothing again.
  await page.reload();
  await expect(thanks(page)).toBeVisible();
  await expect(credits(page, 40)).toBeVisible();

  await page.getByRole('button', { name: email }).click();
  await page.getByRole('menuitem', { name: 'Checkouts' }).click();
  const rows = page.getByRole('row');
  await expect(rows).toHaveCount(2);
  await expect(rows.last().getByRole('cell').nth(1)).toHaveText('Fulfilled');
  await expect(rows.last().getByRole('cell').nth(2)).toHaveText('20 credits');
  await checkScreen(page);

  // The whole row is a link. It covers the cell, so Playwright needs `force`.
  await rows.last().getByRole('cell').last().click({ force: true });
  await expect(page).toHaveURL(/\/checkouts\/[0-9a-f-]{36}$/);
  await expect(page.getByRole('heading', { name: 'Order Details' })).toBeVisible();
  await expect(page.getByText('paid', { exact: true })).toBeVisible();
  await expect(page.getByText('Fulfilled', { exact: true })).toBeVisible();
  for (const text of ['20 Credits', email, '$2']) {
    await expect(page.getByRole('definition').filter({ hasText: text })).toBeVisible();
  }
  await checkScreen(page);
  await page.getByRole('link', { name: 'Back to Checkouts' }).click();
  await expect(page).toHaveURL(/\/checkouts$/);
});

test('an abandoned payment can be continued later', async ({ page }) => {
  await startSignedIn(page);
  await choose(page, 'Most popular');
  await page.getByRole('button', { name: 'Back to the shop' }).click();
  await expect(page).toHaveURL(/\/pricing$/);
  await expect(credits(page, 20)).toBeVisible();

  await page.goto('/checkout');
  await expect(page.getByRole('heading', { name: 'Your payment is not finished' })).toBeVisible();
  await expect(page.getByRole('region', { name: 'Your pack' })).toContainText('55 credits');
  await checkScreen(page);
  const link = page.getByRole('link', { name: 'Continue payment' });
  const session = new URL(String(await link.getAttribute('href'))).pathname.split('/').at(-1);

  // The thank-you page redirects an unpaid order.
  await page.goto(`/return?session_id=${session}`);
  await expect(page).toHaveURL(`/checkout?session_id=${session}`);
  await link.click();
  await payButton(page).click();
  await expect(thanks(page)).toBeVisible();
  await expect(credits(page, 75)).toBeVisible();

  // Now there is no open payment.
  await page.goto('/checkout');
  await expect(page).toHaveURL(/\/pricing$/);
});

test('the Back button of the browser leads to a usable pricing page', async ({ page }) => {
  await startSignedIn(page);
  await choose(page, 'Cheapest');
  await page.goBack();
  await expect(page).toHaveURL(/\/pricing$/);
  await expect(page.getByText('Taking you to the payment page…')).toBeHidden();
  await choose(page, 'Best Value');
  await payButton(page).click();
  await expect(thanks(page)).toBeVisible();
  await expect(credits(page, 200)).toBeVisible();
});

test('a double click creates one order', async ({ page }) => {
  const opened: string[] = [];
  page.on('request', (request) => {
    if (request.url().includes('/create-checkout-session-')) opened.push(request.url());
  });
  await startSignedIn(page);
  await page.goto('/pricing');
  await page.getByRole('button', { name: 'Choose' }).first().dblclick();
  await expect(payButton(page)).toBeVisible();
  expect(opened).toHaveLength(1);
});

test('a delayed payment grants the credits when it arrives', async ({ page }) => {
  await startSignedIn(page);
  await choose(page, 'Cheapest');
  const paymentPage = page.url();
  await page.getByRole('button', { name: 'Pay later' }).click();
  await expect(onPage(page, 'Your payment is on its way')).toBeVisible();
  await expect(credits(page, 20)).toBeVisible();
  await expectAccessible(page);
  const back = page.url();

  await page.goto(paymentPage);
  await page.getByRole('button', { name: 'The money comes' }).click();
  await page.goto(back);
  await expect(onPage(page, '20 credits were added to your account.')).toBeVisible();
  await expect(credits(page, 40)).toBeVisible();
});

test('an expired payment shows nothing and redirects to the packs', async ({ page }) => {
  await startSignedIn(page);
  await choose(page, 'Cheapest');
  const session = new URL(page.url()).pathname.split('/').at(-1);
  await page.getByRole('button', { name: 'Let it expire' }).click();
  await page.getByRole('link', { name: 'Back to the shop' }).click();
  await expect(page).toHaveURL(/\/pricing$/);

  const checked = page.waitForResponse((response) => response.url().includes('/session-status/'));
  await page.goto(`/return?session_id=${session}`);
  expect(await (await checked).json()).toMatchObject({ status: 'expired' });
  await expect(page.getByRole('main')).toHaveText('');
  await page.goto(`/checkout?session_id=${session}`);
  await expect(page).toHaveURL(/\/pricing$/);
  await expect(credits(page, 20)).toBeVisible();
});

test.describe('refusals', () => {
  test.use({ expectedRefusals: [503] });

  test('a payment page that cannot be opened is reported', async ({ page }) => {
    await startSignedIn(page);
    await page.goto('/pricing');
    await page.route('**/api/payments/create-checkout-session-*', (route) =>
      route.fulfill({ status: 503, contentType: 'application/problem+json', body: '{}' }),
    );
    const button = page.getByRole('button', { name: 'Choose' }).first();
    await button.click();
    await expect(page.getByText('Failed to redirect to payment, please try again later')).toBeVisible();
    await expect(page.getByText('Taking you to the payment page…')).toBeHidden();
    await expect(button).toBeFocused();
    await expectAccessible(page);

    await page.unroute('**/api/payments/create-checkout-session-*');
    await button.click();
    await expect(payButton(page)).toBeVisible();
  });

  test('a toast stays readable with reduced motion', async ({ page }) => {
    await page.emulateMedia({ reducedMotion: 'reduce' });
    await startSignedIn(page);
    await page.goto('/pricing');
    await page.route('**/api/payments/create-checkout-session-*', (route) => route.fulfill({ status: 503 }));
    await page.getByRole('button', { name: 'Choose' }).first().click();
    const toast = page.getByRole('alert').filter({ hasText: 'Failed to redirect to payment' });
    await expect(toast).toBeVisible();
    // Toasts stay for five seconds.
    await page.waitForTimeout(2_000);
    await expect(toast).toBeVisible();
  });
});
