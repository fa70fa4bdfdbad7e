import { screen, waitFor, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { HttpResponse, http } from 'msw';
import { describe, expect, test } from 'vitest';
import { breakGet } from '@/testing/break-get';
import { aDelivery, aWebhook } from '@/testing/builders';
import { MockApi } from '@/testing/mock-api';
import { renderApp } from '@/testing/render-app';
import { server } from '@/testing/server';

const button = (name: string | RegExp) => screen.findByRole('button', { name });
const list = () => screen.findByRole('list', { name: 'Your webhooks' });
const withWebhooks = (...webhooks: ReturnType<typeof aWebhook>[]) =>
  Object.assign(new MockApi(), { webhooks });

function open(api = withWebhooks(aWebhook())) {
  renderApp('/account', { api, signedIn: true });
  return { api, person: userEvent.setup() };
}

describe('adding a webhook', () => {
  test('shows its secret once', async () => {
    const { api, person } = open(new MockApi());
    expect(await screen.findByText('No webhooks yet')).toBeVisible();
    await person.click(await button('Add a webhook'));
    const address = screen.getByRole('textbox', { name: 'Address' });
    expect(address).toHaveFocus();
    await person.type(address, ' https://example.com/hooks ');
    await person.type(screen.getByRole('textbox', { name: /Description/ }), 'shop');
    await person.click(screen.getByRole('checkbox', { name: 'A run was canceled' }));
    const below = screen.getByRole('spinbutton', { name: 'Low-credit threshold' });
    await person.clear(below);
    await person.type(below, '7');
    await person.click(screen.getByRole('button', { name: 'Create webhook' }));
    const secret = await screen.findByRole('textbox', {
      name: 'The secret of https://example.com/hooks',
    });
    expect(secret).toHaveValue('whsec_secret-1');
    expect(secret).toHaveFocus();
    expect(api.webhooks[0]).toMatchObject({
      url: 'https://example.com/hooks',
      description: 'shop',
      events: ['job.done', 'job.failed', 'credits.low'],
      creditsBelow: 7,
    });
    expect(await list()).toHaveTextContent(
      'https://example.com/hooksshopOn · A run is done · A run failed · Credits are low',
    );
    await person.click(screen.getByRole('button', { name: 'Done' }));
    expect(screen.queryByDisplayValue('whsec_secret-1')).toBeNull();
  });

  test('explains what is wrong before the call', async () => {
    const { api, person } = open(new MockApi());
    await person.click(await button('Add a webhook'));
    const create = screen.getByRole('button', { name: 'Create webhook' });
    await person.click(create);
    const address = screen.getByRole('textbox', { name: 'Address' });
    expect(await screen.findByText('Enter the address to call')).toBeVisible();
    expect(address).toHaveFocus();
    expect(address).toBeInvalid();
    await person.type(address, 'https://example.com');
    const below = screen.getByRole('spinbutton');
    await person.clear(below);
    await person.click(create);
    expect(below).toHaveAccessibleDescription('Enter a whole number of credits');
    expect(below).toHaveFocus();
    expect(address).toBeValid();
    for (const box of screen.getAllByRole('checkbox', { checked: true })) await person.click(box);
    expect(screen.queryByRole('alert')).toBeNull();
    await person.click(create);
    expect(screen.getByRole('group', { name: 'Call it when' })).toHaveAccessibleDescription(
      'Choose at least one event.',
    );
    expect(screen.getByRole('checkbox', { name: 'A run is done' })).toHaveFocus();
    expect(address).toBeValid();
    expect(api.calls).not.toContain('POST /api/webhooks');
    await person.click(screen.getByRole('button', { name: 'Cancel' }));
    await waitFor(async () => expect(await button('Add a webhook')).toHaveFocus());
  });

  test.each([
    [422, 'You already have 5 webhooks. Delete one first.', 'You already have 5 webhooks. Delete one first.'],
    // Not the fault of the address.
    [500, 'Failed to save the webhook, try again later', ''],
  ])('explains a %i', async (status, sentence, ofAddress) => {
    const { person } = open(new MockApi());
    server.use(http.post('*/api/webhooks', () => HttpResponse.json({ detail: sentence }, { status })));
    await person.click(await button('Add a webhook'));
    await person.type(screen.getByRole('textbox', { name: 'Address' }), 'https://example.com{Enter}');
    expect(await screen.findByText(sentence)).toBeVisible();
    expect(screen.getByRole('textbox', { name: 'Address' })).toHaveAccessibleDescription(ofAddress);
  });
});

describe('a webhook', () => {
  test('can be changed, turned off, and turned on', async () => {
    const { api, person } = open();
    await person.click(await button('Edit'));
    const form = screen.getByRole('form', { name: 'Edit the webhook' });
    const address = within(form).getByRole('textbox', { name: 'Address' });
    await person.clear(address);
    await person.type(address, 'https://example.com/v2');
    await person.click(within(form).getByRole('button', { name: 'Save' }));
    expect(await screen.findByText('https://example.com/v2')).toBeVisible();
    await waitFor(async () => expect(await button('Edit')).toHaveFocus());
    await person.click(await button('Turn off'));
    expect(await button('Turn on')).toBeVisible();
    expect(api.webhooks[0]).toMatchObject({ url: 'https://example.com/v2', enabled: false });
    expect(screen.queryByRole('button', { name: 'Send a test event' })).toBeNull();
    await person.click(await button('Turn on'));
    expect(await button('Send a test event')).toBeVisible();
  });

  test('keeps its threshold if the field is not shown', async () => {
    const { api, person } = open(
      withWebhooks(aWebhook({ events: ['job.done', 'credits.low'], creditsBelow: 7 })),
    );
    await person.click(await button('Edit'));
    await person.clear(screen.getByRole('spinbutton'));
    await person.click(screen.getByRole('checkbox', { name: 'Credits are low' }));
    await person.click(screen.getByRole('button', { name: 'Save' }));
    await waitFor(() => expect(api.webhooks[0]).toMatchObject({ events: ['job.done'], creditsBelow: 7 }));
  });

  test('gets a new secret after a confirmation', async () => {
    const { person } = open();
    await person.click(await button('Replace the secret'));
    const question = await screen.findByRole('alertdialog', { name: 'Replace the secret?' });
    await person.click(within(question).getByRole('button', { name: 'Replace the secret' }));
    expect(await screen.findByDisplayValue('whsec_secret-1')).toHaveFocus();
    expect(await screen.findByText(/The old secret remains valid until/)).toBeVisible();
  });

  test.each([
    [204, 'No webhooks yet'],
    [404, 'No webhooks yet'],
    [500, 'Failed to delete the webhook, try again later'],
  ])('after a deletion answered with %i the page says "%s"', async (status, sentence) => {
    const { person } = open();
    server.use(http.delete('*/api/webhooks/:id', () => new HttpResponse(null, { status })));
    await person.click(await button('Delete https://example.com/hooks'));
    const question = await screen.findByRole('alertdialog', { name: 'Delete this webhook?' });
    await person.click(within(question).getByRole('button', { name: 'Delete' }));
    expect(await screen.findByText(sentence)).toBeVisible();
  });

  test.each([
    [{ enabled: false, disabledReason: 'gone' as const }, /answered 410/],
    [{ enabled: false, disabledReason: 'failing' as const }, /every call failed for five days/],
    [{ failingSince: '2026-11-20T10:00:00Z' }, /Every call has failed since .*2026/],
  ])('says what is wrong with it: %o', async (change, sentence) => {
    open(withWebhooks(aWebhook(change)));
    expect(await screen.findByRole('alert')).toHaveTextContent(sentence);
  });

  test('can be loaded again after a failure', async () => {
    open();
    const repair = breakGet('*/api/webhooks');
    expect(await screen.findByText('Failed to load webhooks')).toBeVisible();
    repair();
    await userEvent.click(await button('Try again'));
    expect(await list()).toBeVisible();
  });
});

describe('deliveries', () => {
  const rows = async () =>
    within(await screen.findByRole('list', { name: 'Last deliveries' })).getAllByRole('listitem');

  test('are listed with their outcome, and sent again', async () => {
    const api = withWebhooks(aWebhook());
    api.deliveries = [
      aDelivery({ id: 'a', durationMs: 340 }),
      aDelivery({
        id: 'b',
        event: 'job.failed',
        state: 'waiting',
        attempts: 3,
        responseStatus: null,
        problem: 'timeout',
        nextAttemptAt: '2126-11-20T10:00:00Z',
      }),
      aDelivery({ id: 'c', event: 'credits.low', state: 'failed', responseStatus: 500, problem: 'status' }),
      aDelivery({ id: 'd', state: 'failed', responseStatus: null, problem: 'address', durationMs: 2 }),
    ];
    const { person } = open(api);
    await person.click(await button('Last deliveries'));
    const [delivered, waiting, failed, refused] = await rows();
    expect(delivered).toHaveTextContent(/A run is done · .*Delivered · Answer 200 after 0.3 s/);
    expect(waiting).toHaveTextContent(
      /A run failed.*Waiting · No answer within 15 seconds · 3 attempts.*Next attempt .*2126/,
    );
    expect(within(waiting as HTMLElement).queryByRole('button')).toBeNull();
    expect(failed).toHaveTextContent(/Credits are low.*Not delivered · Answer 500/);
    expect(refused).toHaveTextContent('The address is on a private network');
    await person.click(within(failed as HTMLElement).getByRole('button', { name: 'Send again' }));
    await waitFor(async () => expect((await rows())[2]).toHaveTextContent('Being sent'));
  });

  test('a test event appears among them', async () => {
    const { person } = open();
    await person.click(await button('Send a test event'));
    const [row] = await rows();
    expect(row).toHaveTextContent(/Test · .*Being sent/);
  });

  test('say so if there are none, or they cannot be loaded', async () => {
    const { person } = open();
    await person.click(await button('Last deliveries'));
    expect(await screen.findByText('Nothing was sent in the last 14 days.')).toBeVisible();
    await person.click(await button('Last deliveries'));
    const repair = breakGet('*/api/webhooks/:id/deliveries');
    await person.click(await button('Send a test event'));
    expect(await screen.findByText('Failed to load deliveries')).toBeVisible();
    repair();
  });

  test('explain why a test event was not sent', async () => {
    const { person } = open();
    const detail = 'You can start 30 deliveries per minute. Try again in 2 seconds.';
    server.use(http.post('*/api/webhooks/:id/test', () => HttpResponse.json({ detail }, { status: 429 })));
    await person.click(await button('Send a test event'));
    expect(await screen.findByText(detail)).toBeVisible();
  });
});
