import { act, screen, waitFor, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { delay, HttpResponse, http } from 'msw';
import { beforeEach, expect, test, vi } from 'vitest';
import { useUploads } from '@/features/images/uploads';
import { readImageSize } from '@/lib/image-size';
import { anImage } from '@/testing/builders';
import { MockApi } from '@/testing/mock-api';
import { renderApp } from '@/testing/render-app';
import { server } from '@/testing/server';

vi.mock('@/lib/image-size', () => ({ readImageSize: vi.fn() }));

beforeEach(() => {
  vi.mocked(readImageSize).mockResolvedValue({ x: 800, y: 600 });
  useUploads.setState({ uploads: [] });
});

const uploaded = anImage({ id: 'image-new' });

/** Starts an upload on My Images that ends when the returned function is called. */
async function startUpload() {
  const api = Object.assign(new MockApi(), { images: [anImage()] });
  const view = renderApp('/magic', { api, signedIn: true });
  let finish = (_: Response) => {};
  const answer = new Promise<Response>((resolve) => {
    finish = resolve;
  });
  server.use(http.post('*/api/images/upload', () => answer));
  const file = new File(['bytes'], 'photo.png', { type: 'image/png' });
  await userEvent.upload(await screen.findByLabelText('Image file'), file);
  const send = screen.getByRole('button', { name: 'Upload' });
  await waitFor(() => expect(send).toBeEnabled());
  await userEvent.click(send);
  return { ...view, api, finish };
}

test('the page that started an upload shows its image', async () => {
  const { router, api, finish } = await startUpload();
  api.images = [uploaded];
  finish(HttpResponse.json(uploaded, { status: 201 }));
  await waitFor(() => expect(router.state.location.pathname).toBe('/magic/image-new'));
  expect(screen.queryByRole('list', { name: 'Uploads' })).toBeNull();
});

test('an upload whose page was left goes on in the shell, and navigates only on request', async () => {
  const { router, api, finish } = await startUpload();
  await act(() => router.navigate('/magic/image-1'));
  const notice = within(await screen.findByRole('list', { name: 'Uploads' }));
  expect(notice.getByRole('status')).toHaveTextContent('photo.png is being uploaded');
  expect(notice.getByRole('progressbar', { name: 'Upload of photo.png' })).toBeVisible();

  api.images = [...api.images, uploaded];
  finish(HttpResponse.json(uploaded, { status: 201 }));
  await waitFor(() => expect(notice.getByRole('status')).toHaveTextContent('photo.png is uploaded'));
  expect(router.state.location.pathname).toBe('/magic/image-1');
  await userEvent.click(notice.getByRole('link', { name: 'Show it' }));
  await waitFor(() => expect(router.state.location.pathname).toBe('/magic/image-new'));
  expect(screen.queryByRole('list', { name: 'Uploads' })).toBeNull();
});

test('picking a stored picture meanwhile keeps it picked', async () => {
  const { router, finish } = await startUpload();
  await userEvent.click(screen.getByRole('button', { name: /^Image of/ }));
  expect(await screen.findByRole('list', { name: 'Uploads' })).toBeVisible();
  finish(HttpResponse.json(uploaded, { status: 201 }));
  expect(await screen.findByText('is uploaded', { exact: false })).toBeVisible();
  await delay(50);
  expect(router.state.location.pathname).toBe('/magic');
  expect(screen.getByRole('button', { name: 'Select' })).toBeVisible();
});

test('an upload whose page was left says why it failed', async () => {
  const { router, finish } = await startUpload();
  await act(() => router.navigate('/pricing'));
  finish(HttpResponse.json({ detail: 'Your storage is full.' }, { status: 422 }));
  const notice = within(await screen.findByRole('list', { name: 'Uploads' }));
  expect(await notice.findByText('Your storage is full.')).toBeVisible();
  await userEvent.click(notice.getByRole('button', { name: 'Close' }));
  expect(screen.queryByRole('list', { name: 'Uploads' })).toBeNull();
});
