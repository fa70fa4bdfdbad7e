import { screen, waitFor } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { HttpResponse, http } from 'msw';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import { readImageSize } from '@/lib/image-size';
import { aConfig, anImage } from '@/testing/builders';
import { MockApi } from '@/testing/mock-api';
import { renderApp } from '@/testing/render-app';
import { server } from '@/testing/server';

// jsdom cannot decode images.
vi.mock('@/lib/image-size', () => ({ readImageSize: vi.fn() }));

const choose = async (file = new File(['bytes'], 'photo.png', { type: 'image/png' })) =>
  userEvent.upload(await screen.findByLabelText('Image file'), file);

async function chooseAndFindRun(file?: File) {
  await choose(file);
  return screen.findByRole('button', { name: 'Free Upscale' });
}

function withUpscale(change: Partial<ReturnType<typeof aConfig>['tools'][number]>) {
  const config = aConfig();
  config.tools = config.tools.map((offer) => (offer.tool === 'upscale' ? { ...offer, ...change } : offer));
  return Object.assign(new MockApi(), { config, images: [anImage()] });
}

const oversizeReport = expect.stringMatching(/^GET \/api\/free\/upload\?x=1441&y=10&url=/);

beforeEach(() => {
  vi.mocked(readImageSize).mockResolvedValue({ x: 800, y: 600 });
});

describe('the free tool of a visitor', () => {
  test('upscales one image, once', async () => {
    const { api } = renderApp('/upscale');
    const run = await chooseAndFindRun();
    expect(screen.getByRole('link', { name: 'Upscale 2X (Requires login)' })).toHaveAttribute(
      'href',
      '/signup',
    );
    expect(screen.getByRole('link', { name: 'Upscale 4X (Requires login)' })).toHaveAttribute(
      'href',
      '/signup',
    );
    await waitFor(() => expect(run).toBeEnabled());
    await userEvent.click(run);
    expect(await screen.findByRole('button', { name: 'Download' })).toBeVisible();
    const result = screen.getByRole('img', { name: 'Upscaled result' }).closest('figure');
    expect(result).toHaveTextContent(/^2X.*2400 × 1600 px/);
    expect(screen.getByRole('button', { name: 'Free Upscale' })).toHaveAttribute('aria-disabled', 'true');
    expect(api.calls).toContain('POST /api/free/upscale-fr');

    await userEvent.click(screen.getByRole('button', { name: 'Compare' }));
    expect(await screen.findByRole('slider', { name: 'Compare the original with the result' })).toBeVisible();
  });

  test('shows the size of a picture that the API returns at once', async () => {
    renderApp('/upscale');
    server.use(
      http.post('*/api/free/upscale-fr', () =>
        HttpResponse.arrayBuffer(new ArrayBuffer(8), { headers: { 'Content-Type': 'image/png' } }),
      ),
    );
    const run = await chooseAndFindRun();
    await waitFor(() => expect(run).toBeEnabled());
    vi.mocked(readImageSize).mockResolvedValue({ x: 1600, y: 1200 });
    await userEvent.click(run);
    expect(await screen.findByText(/^1600 × 1200 px/)).toBeVisible();
  });

  test('refuses another run after Free Exists', async () => {
    renderApp('/upscale');
    server.use(
      http.post('*/api/free/upscale-fr', () => HttpResponse.json({ detail: 'Free Exists' }, { status: 409 })),
    );
    const run = await chooseAndFindRun();
    await waitFor(() => expect(run).toBeEnabled());
    await userEvent.click(run);
    expect((await screen.findAllByText('Free upscale image already created'))[0]).toBeVisible();
    expect(run).toHaveAttribute('aria-disabled', 'true');
  });

  test('says Failed to upscale', async () => {
    renderApp('/upscale');
    server.use(http.post('*/api/free/upscale-fr', () => new HttpResponse(null, { status: 503 })));
    const run = await chooseAndFindRun();
    await waitFor(() => expect(run).toBeEnabled());
    await userEvent.click(run);
    expect(await screen.findByText('Failed to upscale')).toBeVisible();
    await waitFor(() => expect(run).toBeEnabled());
  });

  test('accepts an image of 1440 × 1440', async () => {
    vi.mocked(readImageSize).mockResolvedValue({ x: 1440, y: 1440 });
    renderApp('/upscale');
    expect(await screen.findByText(/^Up to 1440 × 1440 px/)).toBeVisible();
    const run = await chooseAndFindRun();
    await waitFor(() => expect(run).toBeEnabled());
  });

  test('disables the action when the image is too large for upscaling, and reports it', async () => {
    vi.mocked(readImageSize).mockResolvedValue({ x: 1441, y: 10 });
    const { api } = renderApp('/upscale');
    const run = await chooseAndFindRun();
    expect(await screen.findByText('Image dimensions too big (Max 1440x1440)')).toBeVisible();
    expect(run).toBeDisabled();
    await waitFor(() => expect(api.calls).toContainEqual(oversizeReport));
  });

  test('disables the action when a picture that only the server can show is too large', async () => {
    vi.mocked(readImageSize).mockRejectedValue(new Error('no HEIC'));
    const { api } = renderApp('/upscale');
    const headers = { 'X-Width': '1441', 'X-Height': '10' };
    server.use(http.post('*/api/preview', () => HttpResponse.arrayBuffer(new ArrayBuffer(8), { headers })));
    const run = await chooseAndFindRun(new File(['bytes'], 'photo.heic', { type: 'image/heic' }));
    expect(await screen.findByText('Image dimensions too big (Max 1440x1440)')).toBeVisible();
    expect(screen.getByText(/1441 × 10 px/)).toBeVisible();
    expect(run).toBeDisabled();
    await waitFor(() => expect(api.calls).toContainEqual(oversizeReport));
  });

  test('names its own limit for a picture that is too large for the server to show', async () => {
    vi.mocked(readImageSize).mockRejectedValue(new Error('no HEIC'));
    renderApp('/upscale');
    const detail = 'Image dimensions too big (Max 6000x6000)';
    server.use(
      http.post('*/api/preview', () =>
        HttpResponse.json({ detail, code: 'image_too_large' }, { status: 422 }),
      ),
    );
    const run = await chooseAndFindRun(new File(['bytes'], 'photo.heic', { type: 'image/heic' }));
    expect(await screen.findByText('Image dimensions too big (Max 1440x1440)')).toBeVisible();
    expect(run).toBeDisabled();
  });

  test('says when there are no free runs', async () => {
    renderApp('/upscale', { api: withUpscale({ freeAvailable: false }) });
    expect(await screen.findByText(/This server offers no free runs/)).toBeVisible();
    expect(screen.queryByLabelText('Image file')).toBeNull();
  });
});

describe('the picker of a signed-in user', () => {
  test('opens the tool page of a selected image', async () => {
    const { router } = renderApp('/upscale', { api: withUpscale({}), signedIn: true });
    await userEvent.click(await screen.findByRole('button', { name: /^Image of/ }));
    await userEvent.click(screen.getByRole('button', { name: 'Select' }));
    await waitFor(() => expect(router.state.location.pathname).toBe('/upscale/image-1'));
    expect(await screen.findByRole('button', { name: 'Upscale 4X' })).toBeVisible();
  });

  test('offers no image that is too large for upscaling, and says why', async () => {
    const images = [
      anImage({ id: 'large', name: 'large.png', x: 1441, y: 10 }),
      anImage({ name: 'small.png' }),
    ];
    renderApp('/upscale', { api: Object.assign(new MockApi(), { images }), signedIn: true });
    const large = await screen.findByRole('button', { name: 'large.png' });
    expect(large).toHaveAttribute('aria-disabled', 'true');
    expect(large).toHaveAccessibleDescription('Image dimensions too big (Max 1440x1440)');
    await userEvent.click(large);
    expect(screen.queryByRole('button', { name: 'Select' })).toBeNull();
    // The arrow keys pass it.
    await userEvent.keyboard('{ArrowRight}{Enter}');
    expect(await screen.findByRole('button', { name: 'Select' })).toBeVisible();
  });

  test('opens the tool page of an uploaded image', async () => {
    const { router, api } = renderApp('/upscale', { signedIn: true });
    await choose();
    await userEvent.click(await screen.findByRole('button', { name: 'Upload' }));
    await waitFor(() => expect(router.state.location.pathname).toBe(`/upscale/${api.images[0]?.id}`));
  });

  test('disables Upload when the image is too large for upscaling, and reports it', async () => {
    vi.mocked(readImageSize).mockResolvedValue({ x: 1441, y: 10 });
    const { api } = renderApp('/upscale', { signedIn: true });
    await choose();
    expect(await screen.findByText('Image dimensions too big (Max 1440x1440)')).toBeVisible();
    expect(screen.getByRole('button', { name: 'Upload' })).toBeDisabled();
    await waitFor(() => expect(api.calls).toContainEqual(oversizeReport));
  });

  test('says when the tool is not installed', async () => {
    const api = withUpscale({ available: false, freeAvailable: false });
    renderApp('/upscale', { api, signedIn: true });
    expect(
      await screen.findByRole('heading', { name: 'Upscale is not installed on this server yet' }),
    ).toBeVisible();
  });
});
