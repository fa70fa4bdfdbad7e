import { act, screen, waitFor, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { HttpResponse, http } from 'msw';
import { expect, test } from 'vitest';
import { anImage, aResult } from '@/testing/builders';
import { MockApi } from '@/testing/mock-api';
import { renderApp } from '@/testing/render-app';
import { server } from '@/testing/server';

const path = '/remove-background/image-1';

async function runButton() {
  const button = await screen.findByRole('button', { name: 'Remove Bg AI' });
  await waitFor(() => expect(button).toBeEnabled());
  return button;
}

test('a run whose answer is due is not started again after a visit to another page', async () => {
  const api = Object.assign(new MockApi(), { images: [anImage()] });
  const { router } = renderApp(path, { api, signedIn: true });
  let pass = () => {};
  const held = new Promise<void>((resolve) => {
    pass = resolve;
  });
  const keys: (string | null)[] = [];
  server.use(
    http.post('*/api/rmbg-images/remove-bg-ai', ({ request }) => {
      keys.push(request.headers.get('Idempotency-Key'));
      return keys.length === 1 ? held : undefined;
    }),
  );
  await userEvent.click(await runButton());
  await waitFor(() => expect(keys).toHaveLength(1));

  await act(() => router.navigate('/images'));
  await act(() => router.navigate(path));
  await userEvent.click(await runButton());
  await waitFor(() => expect(keys).toHaveLength(2));
  pass();

  expect(keys[1]).toBe(keys[0]);
  const results = await screen.findByRole('list', { name: 'All results' });
  expect(await within(results).findAllByRole('img')).toHaveLength(1);
  expect(api.results).toHaveLength(1);
});

test('a run adds nothing to a list of results that could not be loaded, but loads it', async () => {
  const earlier = ['one', 'two'].map((imageId) => aResult({ imageId }));
  const api = Object.assign(new MockApi(), { images: [anImage()], results: earlier });
  renderApp(path, { api, signedIn: true });
  let isAway = true;
  server.use(
    http.get('*/api/rmbg-images/:id', () => (isAway ? new HttpResponse(null, { status: 500 }) : undefined)),
  );
  await screen.findByRole('button', { name: 'Try again' });
  isAway = false;
  await userEvent.click(await runButton());
  const results = await screen.findByRole('list', { name: 'All results' });
  await waitFor(() => expect(within(results).getAllByRole('img')).toHaveLength(3));
});
