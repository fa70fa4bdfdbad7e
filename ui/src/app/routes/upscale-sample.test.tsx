import { screen, waitFor } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { HttpResponse, http } from 'msw';
import { beforeEach, expect, test, vi } from 'vitest';
import { cut } from '@/features/sample/picture-parts';
import { readImageSize } from '@/lib/image-size';
import { aConfig, aModel, anImage, aResult } from '@/testing/builders';
import { MockApi } from '@/testing/mock-api';
import { renderApp } from '@/testing/render-app';
import { server } from '@/testing/server';

// jsdom cannot decode pictures or draw them.
vi.mock('@/lib/image-size', () => ({ readImageSize: vi.fn() }));
vi.mock('@/features/sample/picture-parts', () => ({
  decode: vi.fn(async () => ({ naturalWidth: 800, naturalHeight: 600 })),
  reduce: vi.fn(() => ({ luma: new Uint8ClampedArray(80 * 60), width: 80, height: 60, scale: 0.1 })),
  cut: vi.fn(async () => new File(['detail'], 'detail.png', { type: 'image/png' })),
}));

beforeEach(() => {
  vi.mocked(readImageSize).mockResolvedValue({ x: 800, y: 600 });
  server.use(http.get('*/api/files/*', () => HttpResponse.arrayBuffer(new ArrayBuffer(8))));
});

/** A server whose paid upscales have a better model than the free ones, whatever the size. */
function withFineModel() {
  const config = aConfig();
  for (const { tool, models } of config.tools) if (tool === 'upscale') models.allPaid = [aModel('fine')];
  return Object.assign(new MockApi(), { config, images: [anImage({ x: 800, y: 600 })] });
}

const compare = () => screen.findByRole('button', { name: 'Compare a detail' });

async function choosePhoto() {
  const photo = new File(['bytes'], 'photo.png', { type: 'image/png' });
  await userEvent.upload(await screen.findByLabelText('Image file'), photo);
}

test('a visitor compares a detail, and then another one', async () => {
  const { api } = renderApp('/upscale', { api: withFineModel() });
  await choosePhoto();
  await userEvent.click(await compare());
  const slider = await screen.findByRole('slider', {
    name: 'Your image, enlarged and Upscale 2X of a detail',
  });
  expect(slider).toBeVisible();
  expect(api.samples).toHaveLength(1);
  expect(api.samples[0]).toMatchObject({ query: '?factor=2&width=800&height=600' });
  expect(await api.samples[0]?.file.text()).toBe('detail');
  expect(screen.getByText(/The detail is 128 × 128 pixels of your image\./)).toBeVisible();

  await userEvent.click(screen.getByRole('button', { name: 'Show another detail' }));
  await waitFor(() => expect(api.samples).toHaveLength(2));
  const [first, second] = vi.mocked(cut).mock.calls.map(([, part]) => part);
  expect(second).not.toEqual(first);
});

test('after a free run, its result is what the detail is compared with', async () => {
  renderApp('/upscale', { api: withFineModel() });
  await choosePhoto();
  const run = await screen.findByRole('button', { name: 'Free Upscale' });
  await waitFor(() => expect(run).toBeEnabled());
  await userEvent.click(run);
  await screen.findByRole('button', { name: 'Download' });
  await userEvent.click(await compare());
  expect(
    await screen.findByRole('slider', { name: 'Free Upscale and Upscale 2X of a detail' }),
  ).toBeVisible();
});

test('a user compares with the free result of the image', async () => {
  const api = withFineModel();
  const [image] = api.images;
  api.upscaled = [aResult({ sourceImageId: image?.id, factor: 2, credits: 0, url: '/api/files/free.png' })];
  renderApp('/upscale/image-1', { api, signedIn: true });
  await userEvent.click(await compare());
  expect(
    await screen.findByRole('slider', { name: 'Free Upscale and Upscale 2X of a detail' }),
  ).toBeVisible();
  const left = document.querySelector('section[aria-labelledby=sample] figure svg image');
  expect(left).toHaveAttribute('href', '/api/files/free.png');
  expect(api.calls).not.toContain('POST /api/upscale/upscale-ai-2');
});

test('the reason is shown where no sample can be made, and a second try works', async () => {
  renderApp('/upscale/image-1', { api: withFineModel(), signedIn: true });
  const detail = 'No worker can make a sample right now. Try again later.';
  server.use(
    http.post('*/api/upscale/sample', () => HttpResponse.json({ detail }, { status: 503 }), { once: true }),
  );
  await userEvent.click(await compare());
  expect(await screen.findByText(detail)).toBeVisible();
  await userEvent.click(screen.getByRole('button', { name: 'Try again' }));
  expect(await screen.findByRole('slider', { name: /of a detail$/ })).toBeVisible();
  expect(screen.queryByText(detail)).toBeNull();
});

test('nothing is offered where paid and free runs get the same model', async () => {
  // The large model only takes small pictures here.
  const api = Object.assign(new MockApi(), { images: [anImage({ x: 800, y: 600 })] });
  renderApp('/upscale/image-1', { api, signedIn: true });
  await screen.findByRole('button', { name: 'Upscale 2X' });
  await waitFor(() => expect(screen.getByRole('button', { name: 'Free Upscale' })).toBeEnabled());
  expect(screen.queryByRole('button', { name: 'Compare a detail' })).toBeNull();
});
