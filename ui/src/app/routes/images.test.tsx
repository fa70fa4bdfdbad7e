import { fireEvent, screen, waitFor, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { HttpResponse, http } from 'msw';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import { readImageSize } from '@/lib/image-size';
import { queryKeys } from '@/lib/query-keys';
import { aConfig, anImage, aResult } from '@/testing/builders';
import { MockApi } from '@/testing/mock-api';
import { renderApp } from '@/testing/render-app';
import { server } from '@/testing/server';

// jsdom cannot decode images.
vi.mock('@/lib/image-size', () => ({ readImageSize: vi.fn() }));

const aFile = (name = 'photo.png', type = 'image/png') => new File(['bytes'], name, { type });
const choose = async (file: File) =>
  userEvent.upload(await screen.findByLabelText('Image file'), file, { applyAccept: false });

beforeEach(() => {
  vi.mocked(readImageSize).mockResolvedValue({ x: 800, y: 600 });
});

describe('my images', () => {
  test('uploads a chosen image and goes to its page', async () => {
    const { router, api } = renderApp('/images', { signedIn: true });
    await choose(aFile());
    await userEvent.click(await screen.findByRole('button', { name: 'Upload' }));
    await waitFor(() => expect(router.state.location.pathname).toBe(`/images/${api.images[0]?.id}`));
  });

  test('disables Upload when the image is too large, and reports it', async () => {
    vi.mocked(readImageSize).mockResolvedValue({ x: 6001, y: 10 });
    const { api } = renderApp('/images', { signedIn: true });
    await choose(aFile());
    expect(await screen.findByText('Image dimensions too big (Max 6000x6000)')).toBeVisible();
    expect(screen.getByRole('button', { name: 'Upload' })).toBeDisabled();
    await waitFor(() =>
      expect(api.calls).toContainEqual(expect.stringMatching(/^GET \/api\/free\/upload\?x=6001&y=10&url=/)),
    );
  });

  test.each([
    ['another format', 'photo.gif', 'image/gif'],
    ['a document that looks like a picture', 'photo.png', 'image/png'],
  ])('lets the server say what is wrong with %s', async (_, name, type) => {
    vi.mocked(readImageSize).mockRejectedValue(new Error('no picture'));
    renderApp('/images', { signedIn: true });
    const detail = 'This is something else.';
    server.use(http.post('*/api/preview', () => HttpResponse.json({ detail }, { status: 415 })));
    await choose(aFile(name, type));
    expect(await screen.findByText(detail)).toBeVisible();
    expect(screen.getByRole('button', { name: 'Upload' })).toBeDisabled();
  });

  test.each(['image/gif', 'image/tiff', 'image/bmp'])(
    'refuses %s without the server’s verdict',
    async (type) => {
      renderApp('/images', { signedIn: true });
      server.use(http.post('*/api/preview', () => HttpResponse.error()));
      await choose(aFile('photo', type));
      expect(
        await screen.findByText(
          'We can’t read this file as an image. Choose a JPG, PNG, WebP, HEIC or AVIF file.',
        ),
      ).toBeVisible();
      expect(screen.getByRole('button', { name: 'Upload' })).toBeDisabled();
    },
  );

  test.each([
    ['photo.CR3', '', 'This is a RAW photo. Export it as JPEG or PNG and upload that.'],
    ['photo.dng', 'image/x-adobe-dng', 'This is a RAW photo. Export it as JPEG or PNG and upload that.'],
    ['logo.svg', 'image/svg+xml', 'This is a drawing (SVG). Export it as PNG and upload that.'],
  ])('says what to do with %s', async (name, type, advice) => {
    renderApp('/images', { signedIn: true });
    await choose(aFile(name, type));
    expect(await screen.findByText(advice)).toBeVisible();
    expect(screen.getByRole('button', { name: 'Upload' })).toBeDisabled();
  });

  test.each([
    ['photo.heic', ''],
    ['photo', 'image/heic'],
    ['photo.AVIF', 'image/avif'],
  ])(
    'shows the server’s preview of %s, which this browser cannot show, and uploads the file',
    async (name, type) => {
      vi.mocked(readImageSize).mockRejectedValue(new Error('no HEIC'));
      const { router, api } = renderApp('/images', { signedIn: true });
      server.use(
        http.post('*/api/preview', () =>
          HttpResponse.arrayBuffer(new ArrayBuffer(8), {
            headers: { 'X-Width': '4032', 'X-Height': '3024' },
          }),
        ),
      );
      await choose(aFile(name, type));
      expect(await screen.findByText(/4032 × 3024 px/)).toBeVisible();
      await userEvent.click(screen.getByRole('button', { name: 'Upload' }));
      await waitFor(() => expect(router.state.location.pathname).toBe(`/images/${api.images[0]?.id}`));
    },
  );

  test.each<[string, () => Response]>([
    ['too many previews', () => new HttpResponse(null, { status: 429 })],
    ['a busy server', () => new HttpResponse(null, { status: 503 })],
    ['a lost connection', () => HttpResponse.error()],
  ])('uploads a file without its preview after %s', async (_, answer) => {
    vi.mocked(readImageSize).mockRejectedValue(new Error('no HEIC'));
    const { router, api } = renderApp('/images', { signedIn: true });
    server.use(http.post('*/api/preview', answer));
    await choose(aFile('photo.heic', ''));
    expect(await screen.findByText('This browser cannot show the picture.')).toBeVisible();
    await userEvent.click(screen.getByRole('button', { name: 'Upload' }));
    await waitFor(() => expect(router.state.location.pathname).toBe(`/images/${api.images[0]?.id}`));
  });

  test('no longer sends a file for its preview once it is canceled', async () => {
    vi.mocked(readImageSize).mockRejectedValue(new Error('no HEIC'));
    const abort = vi.spyOn(window.XMLHttpRequest.prototype, 'abort');
    renderApp('/images', { signedIn: true });
    const sent = vi.fn(() => new Promise<never>(() => {}));
    server.use(http.post('*/api/preview', sent));
    await choose(aFile('photo.heic', ''));
    await waitFor(() => expect(sent).toHaveBeenCalled());
    await userEvent.click(screen.getByRole('button', { name: 'Cancel' }));
    expect(abort).toHaveBeenCalledOnce();
  });

  test.each([
    ['photo.heic', { heic: false, avif: true }, 'HEIC files cannot be read here.', 'image/*,.avif'],
    [
      'photo.avif',
      { heic: true, avif: false },
      'AVIF files cannot be read here.',
      'image/*,.heic,.heif,.hif',
    ],
  ])(
    'refuses %s before it is sent to a server that does not read it',
    async (name, features, text, types) => {
      const config = aConfig({ features: { payments: false, ...features } });
      const { api } = renderApp('/images', { api: Object.assign(new MockApi(), { config }), signedIn: true });
      expect(await screen.findByLabelText('Image file')).toHaveAttribute('accept', types);
      await choose(aFile(name, ''));
      expect(await screen.findByText(text, { exact: false })).toBeVisible();
      expect(screen.getByRole('button', { name: 'Upload' })).toBeDisabled();
      expect(api.calls).not.toContain('POST /api/preview');
    },
  );

  test('says why the server cannot show a file', async () => {
    vi.mocked(readImageSize).mockRejectedValue(new Error('no HEIC'));
    renderApp('/images', { signedIn: true });
    const detail = 'HEIC files cannot be read here. Save the picture as JPEG or PNG and upload that.';
    server.use(
      http.post('*/api/preview', () =>
        HttpResponse.json(
          {
            type: 'about:blank',
            title: 'Unsupported Media Type',
            status: 415,
            detail,
            code: 'image_format_unavailable',
          },
          { status: 415 },
        ),
      ),
    );
    await choose(aFile('photo.heic', ''));
    expect(await screen.findByText(detail)).toBeVisible();
    expect(screen.getByRole('button', { name: 'Upload' })).toBeDisabled();
  });

  test('ignores a file that is not an image', async () => {
    renderApp('/images', { signedIn: true });
    await choose(aFile('notes.txt', 'text/plain'));
    expect(screen.getByRole('button', { name: 'Choose files' })).toBeVisible();
    expect(screen.queryByRole('button', { name: 'Upload' })).toBeNull();
  });

  test('says Failed to upload image, with the reason from the API', async () => {
    renderApp('/images', { signedIn: true });
    server.use(
      http.post('*/api/images/upload', () =>
        HttpResponse.json({ detail: 'The file is not a JPG, PNG or WebP image.' }, { status: 415 }),
      ),
    );
    await choose(aFile());
    await userEvent.click(await screen.findByRole('button', { name: 'Upload' }));
    expect(await screen.findByText('Failed to upload image')).toBeVisible();
    expect(screen.getByText('The file is not a JPG, PNG or WebP image.')).toBeVisible();
  });

  test('keeps the focus in the panel when a file is chosen, and when that is canceled', async () => {
    renderApp('/images', { signedIn: true });
    const input = await screen.findByLabelText('Image file');
    screen.getByRole('button', { name: 'Choose files' }).focus();
    // A file dialog returns the focus to the button.
    fireEvent.change(input, { target: { files: [aFile()] } });
    const cancel = await screen.findByRole('button', { name: 'Cancel' });
    expect(screen.getByRole('region', { name: 'Upload an image' })).toHaveFocus();
    await userEvent.click(cancel);
    await screen.findByRole('button', { name: 'Choose files' });
    expect(screen.getByRole('region', { name: 'Upload an image' })).toHaveFocus();
  });

  test('says nothing about the failure of a picture that another one replaced', async () => {
    renderApp('/images', { signedIn: true });
    const detail = 'Your storage is full.';
    server.use(http.post('*/api/images/upload', () => HttpResponse.json({ detail }, { status: 422 })));
    await choose(aFile());
    await userEvent.click(await screen.findByRole('button', { name: 'Upload' }));
    expect(await screen.findByText(detail)).toBeVisible();
    fireEvent.paste(document.body, { clipboardData: { files: [aFile('other.png')] } });
    expect(await screen.findByRole('img', { name: 'Preview of other.png' })).toBeVisible();
    expect(screen.queryByText(detail)).toBeNull();
  });

  test('links each image to its page', async () => {
    const api = Object.assign(new MockApi(), { images: [anImage({ id: 'a' }), anImage({ id: 'b' })] });
    renderApp('/images', { api, signedIn: true });
    const links = await screen.findAllByRole('link', { name: /^Select/ });
    expect(links.map((link) => link.getAttribute('href'))).toEqual(['/images/a', '/images/b']);
  });

  test('says No images to show', async () => {
    renderApp('/images', { signedIn: true });
    expect(await screen.findByText('No images to show')).toBeVisible();
  });

  test('says when the list could not be loaded', async () => {
    renderApp('/images', { signedIn: true });
    server.use(http.get('*/api/images', () => new HttpResponse(null, { status: 500 })));
    expect(await screen.findByText('Failed to load images. Please try again later')).toBeVisible();
    expect(await screen.findByText('Failed to load your images')).toBeVisible();
  });
});

describe('one image', () => {
  test('deletes the image and its results after a confirmation', async () => {
    const api = Object.assign(new MockApi(), { images: [anImage()] });
    const { router } = renderApp('/images/image-1', { api, signedIn: true });
    await userEvent.click(await screen.findByRole('button', { name: 'DELETE ALL IMAGES' }));
    await userEvent.click(
      within(await screen.findByRole('alertdialog')).getByRole('button', { name: 'Delete all' }),
    );
    await waitFor(() => expect(router.state.location.pathname).toBe('/images'));
    expect(await screen.findByText('No images to show')).toBeVisible();
  });

  test('leaves the page of an image that was deleted in another tab', async () => {
    const api = Object.assign(new MockApi(), { images: [anImage()] });
    const { router } = renderApp('/images/image-1', { api, signedIn: true });
    const remove = await screen.findByRole('button', { name: 'DELETE ALL IMAGES' });
    server.use(
      http.delete('*/api/images/:id', () => {
        // Not before: the page may be fetching the image once more, and would say that it is gone.
        api.images = [];
        return new HttpResponse(null, { status: 404 });
      }),
    );
    await userEvent.click(remove);
    await userEvent.click(
      within(await screen.findByRole('alertdialog')).getByRole('button', { name: 'Delete all' }),
    );
    await waitFor(() => expect(router.state.location.pathname).toBe('/images'));
    expect(await screen.findByText('No images to show')).toBeVisible();
  });

  test('says that an image is gone that was deleted in another tab, once it is loaded again', async () => {
    const api = Object.assign(new MockApi(), { images: [anImage()] });
    const { queryClient } = renderApp('/images/image-1', { api, signedIn: true });
    await screen.findByRole('button', { name: 'DELETE ALL IMAGES' });
    api.images = [];
    void queryClient.invalidateQueries({ queryKey: queryKeys.userImage('image-1') });
    expect(await screen.findByRole('heading', { name: 'Failed to find your image' })).toBeVisible();
    expect(screen.queryByRole('button', { name: 'DELETE ALL IMAGES' })).toBeNull();
    expect(screen.getByRole('link', { name: 'Choose another image' })).toHaveAttribute('href', '/images');
  });

  test('calls no API for a deleted image', async () => {
    const api = Object.assign(new MockApi(), {
      images: [anImage()],
      results: [aResult()],
      upscaled: [aResult({ factor: 2 })],
      fixed: [aResult({ prompt: 'remove the cup' })],
    });
    const { router, queryClient } = renderApp('/images/image-1', { api, signedIn: true });
    expect(await screen.findByRole('img', { name: 'Background removed, result 1' })).toBeVisible();
    expect(await screen.findByRole('img', { name: 'Upscaled, result 1' })).toBeVisible();
    expect(await screen.findByRole('img', { name: 'Magic fixed, result 1' })).toBeVisible();
    // Removing an active query would refetch it with the next render.
    const activeWhenRemoved: string[] = [];
    queryClient.getQueryCache().subscribe(({ type, query }) => {
      if (type === 'removed' && query.isActive()) activeWhenRemoved.push(query.queryHash);
    });
    await userEvent.click(screen.getByRole('button', { name: 'DELETE ALL IMAGES' }));
    await userEvent.click(
      within(await screen.findByRole('alertdialog')).getByRole('button', { name: 'Delete all' }),
    );
    await waitFor(() => expect(router.state.location.pathname).toBe('/images'));
    expect(await screen.findByText('No images to show')).toBeVisible();
    // Until the page of the image is gone, it uses them.
    await waitFor(() => {
      for (const kind of ['user-image', 'rmbg-images', 'upscaled-images', 'magic-images']) {
        expect(queryClient.getQueryCache().findAll({ queryKey: [kind, 'image-1'] })).toEqual([]);
      }
    });
    expect(activeWhenRemoved).toEqual([]);
    const after = api.calls.slice(api.calls.indexOf('DELETE /api/images/image-1') + 1);
    expect(after.filter((call) => call.includes('image-1'))).toEqual([]);
  });

  test('keeps the image when it cannot be deleted', async () => {
    const api = Object.assign(new MockApi(), { images: [anImage()] });
    const { router } = renderApp('/images/image-1', { api, signedIn: true });
    server.use(http.delete('*/api/images/:id', () => new HttpResponse(null, { status: 500 })));
    await userEvent.click(await screen.findByRole('button', { name: 'DELETE ALL IMAGES' }));
    await userEvent.click(
      within(await screen.findByRole('alertdialog')).getByRole('button', { name: 'Delete all' }),
    );
    expect(await screen.findByText('Failed to delete image, try again later')).toBeVisible();
    expect(router.state.location.pathname).toBe('/images/image-1');
  });
});

describe('the sections of one image', () => {
  const section = async (name: string) => {
    const heading = await screen.findByRole('heading', { name });
    return within(heading.closest('section') as HTMLElement);
  };

  test('each shows the results of its tool, upscales with their factor', async () => {
    const api = Object.assign(new MockApi(), {
      images: [anImage()],
      results: [aResult({ imageId: 'cutout' })],
      upscaled: [aResult({ imageId: 'twice', factor: 2 }), aResult({ imageId: 'four-times', factor: 4 })],
      fixed: [aResult({ prompt: 'remove the cup' })],
    });
    renderApp('/images/image-1', { api, signedIn: true });
    const upscaled = await section('Upscaled');
    const pictures = await upscaled.findAllByRole('img');
    expect(pictures.map((picture) => picture.getAttribute('src'))).toEqual([
      '/api/files/twice?thumbnail',
      '/api/files/four-times?thumbnail',
    ]);
    expect(pictures.map((picture) => picture.closest('li')?.textContent)).toEqual(['2XDELETE', '4XDELETE']);
    const fixed = await section('Magic fixed');
    expect(await fixed.findByText('“remove the cup”')).toBeVisible();
    const removed = await section('Background removed');
    expect(await removed.findAllByRole('img')).toHaveLength(1);
    expect(removed.queryByText(/^\dX$/)).toBeNull();
  });

  test.each(['Background removed', 'Upscaled', 'Magic fixed'])('%s says No Images to Show', async (name) => {
    const api = Object.assign(new MockApi(), { images: [anImage()] });
    renderApp('/images/image-1', { api, signedIn: true });
    expect(await (await section(name)).findByText('No Images to Show')).toBeVisible();
  });

  test.each([
    ['Background removed', '/api/rmbg-images/one', '/api/rmbg-images/image-1'],
    ['Upscaled', '/api/upscale/one', '/api/upscale/image-1'],
    ['Magic fixed', '/api/magic-images/one', '/api/magic-images/image-1'],
  ])('%s deletes a result after a confirmation', async (name, path, list) => {
    const two = () => [aResult({ imageId: 'one' }), aResult({ imageId: 'two' })];
    const api = Object.assign(new MockApi(), {
      images: [anImage()],
      results: two(),
      upscaled: two(),
      fixed: two(),
    });
    renderApp('/images/image-1', { api, signedIn: true });
    await userEvent.click(
      await (await section(name)).findByRole('button', { name: `DELETE ${name}, result 1` }),
    );
    await userEvent.click(
      within(await screen.findByRole('alertdialog')).getByRole('button', { name: 'Delete' }),
    );
    const here = await section(name);
    await waitFor(() => expect(here.getAllByRole('img')).toHaveLength(1));
    expect(api.calls).toContain(`DELETE ${path}`);
    expect(api.calls.filter((call) => call === `GET ${list}`)).toHaveLength(1);
  });

  test('a deleted result does not come back with a list that was on its way', async () => {
    const [one, two] = [aResult({ imageId: 'one' }), aResult({ imageId: 'two' })];
    const api = Object.assign(new MockApi(), { images: [anImage()], results: [one, two] });
    const { queryClient } = renderApp('/images/image-1', { api, signedIn: true });
    const here = await section('Background removed');
    const remove = await here.findByRole('button', { name: 'DELETE Background removed, result 1' });
    let arrive = () => {};
    const arrival = new Promise<void>((resolve) => {
      arrive = resolve;
    });
    const late = async () => {
      await arrival;
      return HttpResponse.json([one, two]);
    };
    server.use(http.get('*/api/rmbg-images/image-1', late, { once: true }));
    void queryClient.invalidateQueries({ queryKey: ['rmbg-images'] });
    await userEvent.click(remove);
    await userEvent.click(
      within(await screen.findByRole('alertdialog')).getByRole('button', { name: 'Delete' }),
    );
    await waitFor(() => expect(here.getAllByRole('img')).toHaveLength(1));
    arrive();
    await waitFor(() => expect(queryClient.isFetching()).toBe(0));
    expect(here.getAllByRole('img')).toHaveLength(1);
  });

  test('show no failure if the image itself does not exist', async () => {
    renderApp('/images/image-1', { api: new MockApi(), signedIn: true });
    server.use(
      http.get('*/api/upscale/:id', () => HttpResponse.json({ detail: 'Not Found' }, { status: 404 })),
    );
    expect(await screen.findByText('Failed to find your image')).toBeVisible();
    expect(await screen.findByText('Failed to load your original image')).toBeVisible();
    expect(screen.queryByText('Failed to load upscaled images')).toBeNull();
  });

  test.each([
    ['Upscaled', '*/api/upscale/:id', 'Failed to load upscaled images'],
    ['Magic fixed', '*/api/magic-images/:id', 'Failed to load magic fix images'],
  ])('%s says when it could not be loaded', async (name, path, text) => {
    const api = Object.assign(new MockApi(), { images: [anImage()] });
    renderApp('/images/image-1', { api, signedIn: true });
    server.use(http.get(path, () => new HttpResponse(null, { status: 500 })));
    expect(await (await section(name)).findByText(text)).toBeVisible();
    expect((await section(name)).queryByText('No Images to Show')).toBeNull();
  });
});
