import { fireEvent, screen, waitFor } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { delay, HttpResponse, http } from 'msw';
import { expect, test } from 'vitest';
import { anImage } from '@/testing/builders';
import { MockApi } from '@/testing/mock-api';
import { renderApp } from '@/testing/render-app';
import { server } from '@/testing/server';

const withImage = () => Object.assign(new MockApi(), { images: [anImage({ name: 'cat.jpg' })] });
const lists = (api: MockApi) => api.calls.filter((call) => call.startsWith('GET /api/images?'));
const results = (api: MockApi) =>
  api.calls.filter((call) => /^GET .*-images\/image-1|^GET .*upscale\/image-1/.test(call));

test('pointing at a link loads the data of its page, and the page does not load it again', async () => {
  const { api } = renderApp('/pricing', { api: withImage(), signedIn: true });
  const link = await screen.findByRole('link', { name: 'My Images' });
  expect(lists(api)).toEqual([]);
  await userEvent.hover(link);
  await waitFor(() => expect(lists(api)).toHaveLength(1));
  await userEvent.click(link);
  expect(await screen.findByRole('link', { name: 'Select cat.jpg' })).toBeVisible();
  await delay(50);
  expect(lists(api)).toHaveLength(1);
});

test('so does focusing the link of an image', async () => {
  const { api } = renderApp('/images', { api: withImage(), signedIn: true });
  const link = await screen.findByRole('link', { name: 'Select cat.jpg' });
  link.focus();
  await waitFor(() => expect(api.calls).toContain('GET /api/images/image-1'));
  // They load after it, and must not reach the next test.
  await waitFor(() => expect(results(api)).toHaveLength(3));
});

test('the results of an image load with it', async () => {
  const { api } = renderApp('/images', { api: withImage(), signedIn: true });
  const link = await screen.findByRole('link', { name: 'Select cat.jpg' });
  link.focus();
  await waitFor(() => expect(results(api)).toHaveLength(3));
  await userEvent.click(link);
  expect(await screen.findAllByText('No Images to Show')).toHaveLength(3);
  expect(results(api)).toHaveLength(3);
});

test('a link that the pointer only passes loads nothing', async () => {
  const { api } = renderApp('/pricing', { api: withImage(), signedIn: true });
  // At once: a slow machine must not look like a pointer that rests.
  fireEvent.pointerOver(await screen.findByRole('link', { name: 'My Images' }));
  fireEvent.pointerOver(screen.getByRole('main'));
  await delay(150);
  expect(lists(api)).toEqual([]);
});

test('a failure is told by the page only, which tries again', async () => {
  const { api } = renderApp('/pricing', { api: withImage(), signedIn: true });
  const link = await screen.findByRole('link', { name: 'My Images' });
  const broken = http.get('*/api/images', () => new HttpResponse(null, { status: 500 }), { once: true });
  server.use(broken);
  await userEvent.hover(link);
  await waitFor(() => expect(broken.isUsed).toBe(true));
  await delay(50);
  expect(screen.queryByText('Failed to load your images')).toBeNull();
  await userEvent.click(link);
  expect(await screen.findByRole('link', { name: 'Select cat.jpg' })).toBeVisible();
  expect(lists(api)).toHaveLength(1);
});

test('nothing private is loaded for a visitor', async () => {
  const { api } = renderApp('/pricing');
  await userEvent.hover(await screen.findByRole('link', { name: 'Upscale' }));
  await delay(150);
  expect(lists(api)).toEqual([]);
});
