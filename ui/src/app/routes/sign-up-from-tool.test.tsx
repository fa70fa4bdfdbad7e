import { fireEvent, screen, waitFor } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { http } from 'msw';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import { readImageSize } from '@/lib/image-size';
import { keepPicture, takePicture } from '@/lib/kept-picture';
import { keepPasted } from '@/lib/pasted-picture';
import { clearUserData } from '@/lib/sign-out-cleanup';
import { anImage } from '@/testing/builders';
import { MockApi } from '@/testing/mock-api';
import { renderApp } from '@/testing/render-app';
import { server } from '@/testing/server';

// jsdom has neither a database nor image decoders.
vi.mock('@/lib/image-size', () => ({ readImageSize: vi.fn() }));
vi.mock('@/lib/kept-picture', () => ({
  keepPicture: vi.fn(async () => {}),
  takePicture: vi.fn(),
  forgetOriginal: async () => {},
}));

const photo = new File(['bytes'], 'holiday.png', { type: 'image/png' });
const other = new File(['bytes'], 'other.png', { type: 'image/png' });

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
  expect(await screen.findByRole('img', { name: 'Preview of holiday.png' })).toBeVisible();
});

test('an image pasted during an upload is refused at once, and not used later', async () => {
  renderApp('/upscale', { signedIn: true });
  server.use(http.post('*/api/images/upload', () => new Promise<never>(() => {})));
  await userEvent.upload(await screen.findByLabelText('Image file'), other);
  const upload = await screen.findByRole('button', { name: 'Upload' });
  await waitFor(() => expect(upload).toBeEnabled());
  await userEvent.click(upload);
  fireEvent.paste(document.body, { clipboardData: { files: [photo] } });
  expect(await screen.findByText('This page can’t take another image now')).toBeVisible();
  await userEvent.click(screen.getByRole('button', { name: 'Cancel' }));
  await screen.findByLabelText('Image file');
  expect(screen.queryByRole('img', { name: 'Preview of holiday.png' })).toBeNull();
});

test('an image that was pasted for one account is not there for the next one', async () => {
  keepPasted(photo);
  clearUserData();
  renderApp('/upscale', { signedIn: true });
  await screen.findByLabelText('Image file');
  expect(screen.queryByRole('img', { name: 'Preview of holiday.png' })).toBeNull();
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

describe('an image dropped beside the upload panel', () => {
  const drop = (files: File[], types = ['Files']) =>
    fireEvent.drop(screen.getByRole('main'), { dataTransfer: { files, types } });
  const preview = (name: string) => screen.findByRole('img', { name: `Preview of ${name}` });

  test.each([true, false])('is chosen, also instead of another one; signed in: %s', async (signedIn) => {
    renderApp('/upscale', { signedIn });
    await screen.findByLabelText('Image file');
    drop([photo]);
    expect(await preview('holiday.png')).toBeVisible();
    drop([other]);
    expect(await preview('other.png')).toBeVisible();
  });

  test('replaces a stored image that was selected', async () => {
    const api = Object.assign(new MockApi(), { images: [anImage()] });
    renderApp('/magic', { api, signedIn: true });
    await userEvent.click(await screen.findByRole('button', { name: /^Image of/ }));
    drop([photo]);
    expect(await preview('holiday.png')).toBeVisible();
    expect(screen.getByRole('button', { name: 'Upload' })).toBeVisible();
  });

  test('is the only one that a visitor can use, and the page says so', async () => {
    renderApp('/upscale');
    await screen.findByLabelText('Image file');
    drop([photo, other]);
    expect(await preview('holiday.png')).toBeVisible();
    expect(await screen.findByText('Using only the first of 2 images')).toBeVisible();
  });

  test('starts a batch if there are several', async () => {
    const api = Object.assign(new MockApi(), { images: [anImage()] });
    renderApp('/upscale', { api, signedIn: true });
    await userEvent.click(await screen.findByRole('button', { name: /^Image of/ }));
    drop([photo, other]);
    expect(await screen.findByRole('list', { name: '2 images' })).toBeVisible();
  });

  test('is ignored if it was dragged from a page', async () => {
    renderApp('/upscale');
    await screen.findByLabelText('Image file');
    drop([photo], ['Files', 'text/uri-list', 'text/html']);
    const dataTransfer = { files: [photo], types: ['Files', 'text/uri-list', 'text/html'] };
    const panel = screen.getByText('Drop an image here');
    fireEvent.dragOver(panel, { dataTransfer });
    expect(document.documentElement).not.toHaveAttribute('data-dropping');
    fireEvent.drop(panel, { dataTransfer });
    expect(screen.queryByRole('img', { name: /^Preview/ })).toBeNull();
  });
});
