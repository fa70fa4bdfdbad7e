import { fireEvent, screen, waitFor } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { beforeEach, expect, test, vi } from 'vitest';
import { readImageSize } from '@/lib/image-size';
import { keepPicture, takePicture } from '@/lib/kept-picture';
import { renderApp } from '@/testing/render-app';

// jsdom has neither a database nor image decoders.
vi.mock('@/lib/image-size', () => ({ readImageSize: vi.fn() }));
vi.mock('@/lib/kept-picture', () => ({
  PICTURE_KEPT: 'kept',
  keepPicture: vi.fn(async () => {}),
  takePicture: vi.fn(),
}));

const photo = new File(['bytes'], 'holiday.png', { type: 'image/png' });

beforeEach(() => {
  vi.mocked(readImageSize).mockResolvedValue({ x: 800, y: 600 });
  vi.mocked(takePicture).mockResolvedValue(null);
});

test('a visitor who signs up from a tool comes back to it', async () => {
  const { router } = renderApp('/upscale');
  await userEvent.upload(await screen.findByLabelText('Image file'), photo);
  await userEvent.click(await screen.findByRole('link', { name: 'Upscale 4X (Requires login)' }));
  await waitFor(() => expect(router.state.location.pathname).toBe('/signup'));
  // The sign-up page passes this on to the identity provider and returns to it.
  expect(router.state.location.state).toBe('/upscale');
  expect(keepPicture).toHaveBeenCalledWith(photo);
});

test('the picture is there after the sign-up', async () => {
  vi.mocked(takePicture).mockResolvedValueOnce(photo);
  renderApp('/upscale', { signedIn: true });
  expect(await screen.findByRole('img', { name: 'Preview of holiday.png' })).toBeVisible();
  expect(screen.getByRole('button', { name: 'Upload' })).toBeEnabled();
});

test('a visitor who signs up from a pack comes back to the packs', async () => {
  const { router } = renderApp('/pricing');
  const [pack] = await screen.findAllByRole('link', { name: 'Try for free' });
  await userEvent.click(pack as HTMLElement);
  await waitFor(() => expect(router.state.location.pathname).toBe('/signup'));
  expect(router.state.location.state).toBe('/pricing');
});

test.each([
  ['/upscale/image-1', true, '/upscale'],
  ['/magic/image-1', true, '/magic'],
  ['/pricing', true, '/images'],
  ['/dashboard', false, '/remove-background'],
])('an image pasted on %s goes to a page that takes it', async (at, signedIn, to) => {
  const { router } = renderApp(at, { signedIn });
  await screen.findByRole('contentinfo');
  fireEvent.paste(document.body, { clipboardData: { files: [photo] } });
  await waitFor(() => expect(router.state.location.pathname).toBe(to));
  expect(keepPicture).toHaveBeenCalledWith(photo);
});

test('an image pasted into an upload panel stays there', async () => {
  const { router } = renderApp('/upscale');
  await screen.findByLabelText('Image file');
  vi.mocked(keepPicture).mockClear();
  fireEvent.paste(document.body, { clipboardData: { files: [photo] } });
  expect(await screen.findByRole('img', { name: 'Preview of holiday.png' })).toBeVisible();
  expect(router.state.location.pathname).toBe('/upscale');
  expect(keepPicture).not.toHaveBeenCalled();
});
