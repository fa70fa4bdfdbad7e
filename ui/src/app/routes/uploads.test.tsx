import { act, fireEvent, screen, waitFor, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { delay, HttpResponse, http, type RequestHandler } from 'msw';
import { beforeEach, describe, expect, test, vi } from 'vitest';
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

test('an upload whose page was left continues in the shell, and navigates only on request', async () => {
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

test('an upload whose answer was lost is sent again with the same key', async () => {
  const { finish, router } = await startUpload();
  const keys: (string | null)[] = [];
  server.use(
    http.post('*/api/images/upload', ({ request }) => {
      keys.push(request.headers.get('Idempotency-Key'));
      return keys.length < 2 ? HttpResponse.error() : HttpResponse.json(uploaded, { status: 201 });
    }),
  );
  finish(HttpResponse.error());
  const again = async () => {
    const send = await screen.findByRole('button', { name: 'Upload' });
    await waitFor(() => expect(send).toBeEnabled());
    await userEvent.click(send);
  };
  await again();
  await waitFor(() => expect(keys).toHaveLength(1));
  await again();
  await waitFor(() => expect(router.state.location.pathname).toBe('/magic/image-new'));
  expect(keys).toEqual([expect.stringMatching(/^[0-9a-f-]{36}$/), keys[0]]);
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
  expect(notice.getByRole('status')).toHaveTextContent(/^photo\.png: Failed to upload image$/);
  await userEvent.click(notice.getByRole('button', { name: 'Close' }));
  expect(screen.queryByRole('list', { name: 'Uploads' })).toBeNull();
});

describe('files that are dragged over the page', () => {
  const dataTransfer = { files: [], types: ['Files'] };
  const page = () => document.documentElement;
  /** jsdom has no drag events of its own. */
  const leave = (from: Element, relatedTarget: Element | null) =>
    fireEvent(from, new MouseEvent('dragleave', { bubbles: true, relatedTarget }));

  test('mark all of it, until they leave it or are dropped', async () => {
    renderApp('/images', { signedIn: true });
    await screen.findByText('Drop images here');
    for (const end of [
      () => fireEvent.drop(screen.getByRole('main'), { dataTransfer }),
      () => leave(page(), null),
    ]) {
      fireEvent.dragOver(screen.getByRole('contentinfo'), { dataTransfer });
      leave(screen.getByRole('contentinfo'), page());
      expect(page()).toHaveAttribute('data-dropping');
      end();
      expect(page()).not.toHaveAttribute('data-dropping');
    }
  });

  test('do not mark a page that takes none', async () => {
    renderApp('/pricing', { signedIn: true });
    fireEvent.dragOver(await screen.findByRole('main'), { dataTransfer });
    expect(page()).not.toHaveAttribute('data-dropping');
  });
});

describe('several files', () => {
  const aFile = (name: string) => new File(['bytes'], name, { type: 'image/png' });

  /** Drops files on My Images. */
  async function drop(names: string[], ...handlers: RequestHandler[]) {
    const view = renderApp('/images', { signedIn: true });
    server.use(...handlers);
    const zone = (await screen.findByText('Drop images here')).closest('.border-dashed') as Element;
    fireEvent.drop(zone, { dataTransfer: { files: names.map(aFile), types: ['Files'] } });
    return { ...view, list: within(await screen.findByRole('list', { name: 'Uploads' })) };
  }

  test('are uploaded while My Images stays open, and appear there', async () => {
    const { router } = await drop(['one.png', 'two.png', 'three.png']);
    expect(await screen.findByText('3 of 3 uploaded')).toBeVisible();
    await waitFor(() => expect(screen.getAllByRole('link', { name: /^Select/ })).toHaveLength(3));
    expect(router.state.location.pathname).toBe('/images');
    await userEvent.click(screen.getByRole('button', { name: 'Close' }));
    expect(screen.queryByRole('list', { name: 'Uploads' })).toBeNull();
  });

  test('can be chosen in the file dialog', async () => {
    renderApp('/images', { signedIn: true });
    await userEvent.upload(await screen.findByLabelText('Image file'), [aFile('one.png'), aFile('two.png')]);
    expect(await screen.findByText('2 of 2 uploaded')).toBeVisible();
  });

  test('a failed one says why, and is sent again on request', async () => {
    vi.mocked(readImageSize).mockResolvedValueOnce({ x: 6001, y: 10 }).mockResolvedValue({ x: 800, y: 600 });
    const { list, api } = await drop(
      ['huge.png', 'two.png'],
      http.post('*/api/images/upload', () =>
        HttpResponse.json({ detail: 'Full.', code: 'storage_full' }, { status: 422 }),
      ),
    );
    expect(await screen.findByText('0 of 2 uploaded, 2 failed')).toBeVisible();
    expect(list.getByText('Image dimensions too big (Max 6000x6000)')).toBeVisible();
    expect(list.getByText('Full.')).toBeVisible();
    expect(list.queryByRole('button', { name: 'Retry huge.png' })).toBeNull();
    server.resetHandlers(...api.handlers());
    await userEvent.click(list.getByRole('button', { name: 'Retry two.png' }));
    expect(await screen.findByText('1 of 2 uploaded, 1 failed')).toBeVisible();
    expect(list.getByRole('link', { name: 'Show it: two.png' })).toBeVisible();
  });

  test('that failed come first', async () => {
    let sent = 0;
    const { list } = await drop(
      ['one.png', 'two.png', 'three.png', 'four.png'],
      http.post('*/api/images/upload', () => {
        sent += 1;
        return sent > 2 ? new HttpResponse(null, { status: 500 }) : undefined;
      }),
    );
    expect(await screen.findByText('2 of 4 uploaded, 2 failed')).toBeVisible();
    expect(list.getAllByRole('listitem').map((row) => row.textContent?.match(/\w+\.png/)?.[0])).toEqual([
      'three.png',
      'four.png',
      'one.png',
      'two.png',
    ]);
  });

  test('are not sent again if the server has refused them for good', async () => {
    const refuse = () => HttpResponse.json({ detail: 'No image.' }, { status: 415 });
    const { list, api } = await drop(
      ['one.png', 'two.png', 'three.png'],
      http.post('*/api/images/upload', refuse, { once: true }),
      http.post('*/api/images/upload', () => new HttpResponse(null, { status: 500 })),
    );
    expect(await screen.findByText('0 of 3 uploaded, 3 failed')).toBeVisible();
    const refused = list.getByText('No image.').closest('li') as HTMLElement;
    expect(within(refused).queryByRole('button', { name: /^Retry/ })).toBeNull();
    server.resetHandlers(...api.handlers());
    await userEvent.click(screen.getByRole('button', { name: 'Retry all' }));
    expect(await screen.findByText('2 of 3 uploaded, 1 failed')).toBeVisible();
    expect(screen.queryByRole('button', { name: /^Retry/ })).toBeNull();
  });

  test.each([{ status: 422, code: 'storage_full' }, { status: 401 }])(
    'all fail with the first if none can succeed: $status',
    async ({ status, code }) => {
      const refuse = vi.fn(() => HttpResponse.json({ detail: 'Not one more.', code }, { status }));
      const { list, api } = await drop(
        ['one.png', 'two.png', 'three.png', 'four.png', 'five.png'],
        http.post('*/api/images/upload', refuse),
      );
      expect(await screen.findByText('0 of 5 uploaded, 5 failed')).toBeVisible();
      expect(list.getAllByText('Not one more.')).toHaveLength(5);
      expect(refuse.mock.calls.length).toBeLessThanOrEqual(2);
      server.resetHandlers(...api.handlers());
      await userEvent.click(screen.getByRole('button', { name: 'Retry all' }));
      expect(await screen.findByText('5 of 5 uploaded')).toBeVisible();
    },
  );

  test('are retried two at the same time', async () => {
    await drop(
      ['one.png', 'two.png', 'three.png'],
      http.post('*/api/images/upload', () => new HttpResponse(null, { status: 500 })),
    );
    expect(await screen.findByText('0 of 3 uploaded, 3 failed')).toBeVisible();
    server.use(http.post('*/api/images/upload', () => delay('infinite')));
    await userEvent.click(screen.getByRole('button', { name: 'Retry all' }));
    expect(screen.getAllByRole('progressbar', { name: /^Upload of/ })).toHaveLength(2);
    await userEvent.click(screen.getByRole('button', { name: 'Cancel all' }));
  });

  test('wait and continue if the server is busy', async () => {
    const busy = () => new HttpResponse(null, { status: 429, headers: { 'Retry-After': '1' } });
    await drop(['one.png', 'two.png'], http.post('*/api/images/upload', busy, { once: true }));
    expect(await screen.findByText(/waits, because the server is busy/)).toBeVisible();
    expect(await screen.findByText('2 of 2 uploaded')).toBeVisible();
  });

  test('wait for the network, and continue when it returns', async () => {
    const onLine = vi.spyOn(navigator, 'onLine', 'get').mockReturnValue(false);
    const { api } = await drop(
      ['one.png', 'two.png', 'three.png', 'four.png', 'five.png'],
      http.post('*/api/images/upload', () => (navigator.onLine ? undefined : HttpResponse.error())),
    );
    expect(await screen.findAllByText(/waits for the network/)).toHaveLength(2);
    expect(screen.getAllByText('is waiting', { exact: false })).toHaveLength(3);
    await userEvent.click(screen.getByRole('button', { name: 'Cancel one.png' }));
    expect(await screen.findAllByText(/waits for the network/)).toHaveLength(2);
    onLine.mockReturnValue(true);
    act(() => void window.dispatchEvent(new Event('online')));
    expect(await screen.findByText('4 of 4 uploaded')).toBeVisible();
    expect(api.images).toHaveLength(4);
  });

  test('can all be canceled', async () => {
    const { api } = await drop(
      ['one.png', 'two.png', 'three.png'],
      http.post('*/api/images/upload', () => delay('infinite')),
    );
    await waitFor(() => expect(screen.getAllByRole('progressbar', { name: /^Upload of/ })).toHaveLength(2));
    await userEvent.click(screen.getByRole('button', { name: 'Cancel all' }));
    expect(screen.queryByRole('list', { name: 'Uploads' })).toBeNull();
    expect(api.images).toEqual([]);
  });
});

describe('several files on Magic Fix', () => {
  const files = ['one.png', 'two.png', 'three.png'].map(
    (name) => new File([`bytes of ${name}`], name, { type: 'image/png' }),
  );
  /** Names each image after its file. The form data of jsdom has no file names. */
  const receive = (api: MockApi) =>
    http.post('*/api/images/upload', async ({ request }) => {
      const [, id = ''] = (await request.text()).match(/bytes of (\w+)/) ?? [];
      api.images = [anImage({ id }), ...api.images];
      return HttpResponse.json(anImage({ id }), { status: 201 });
    });
  const ids = (api: MockApi) => api.images.map(({ id }) => id).sort();
  const preview = (name: string) => screen.findByRole('img', { name: `Preview of ${name}` });

  test('are all uploaded: the first opens, and the page says where the others are', async () => {
    const { router, api } = renderApp('/magic', { signedIn: true });
    server.use(receive(api));
    await userEvent.upload(await screen.findByLabelText('Image file'), files);
    expect(await preview('one.png')).toBeVisible();
    expect(screen.getByText('This image opens here. The other 2 go to My Images.')).toBeVisible();
    expect(api.images).toEqual([]);

    const send = screen.getByRole('button', { name: 'Upload 3 images' });
    await waitFor(() => expect(send).toBeEnabled());
    await userEvent.click(send);
    await waitFor(() => expect(router.state.location.pathname).toBe('/magic/one'));
    expect(await screen.findByText('2 of 2 uploaded')).toBeVisible();
    const link = screen.getByRole('link', { name: 'Show it: three.png' });
    expect(link).toHaveAttribute('href', '/magic/three');
    expect(ids(api)).toEqual(['one', 'three', 'two']);
  });

  test('are sent once, even if the first fails and is sent again', async () => {
    const { router, api } = renderApp('/magic', { signedIn: true });
    await userEvent.upload(await screen.findByLabelText('Image file'), files);
    const refuse = () => HttpResponse.json({ detail: 'Full.' }, { status: 422 });
    server.use(http.post('*/api/images/upload', refuse, { once: true }), receive(api));
    const send = screen.getByRole('button', { name: 'Upload 3 images' });
    await waitFor(() => expect(send).toBeEnabled());
    await userEvent.click(send);
    expect(await screen.findByText('Full.')).toBeVisible();
    expect(await screen.findByText('2 of 2 uploaded')).toBeVisible();
    await userEvent.click(screen.getByRole('button', { name: 'Upload' }));
    await waitFor(() => expect(router.state.location.pathname).toBe('/magic/one'));
    expect(ids(api)).toEqual(['one', 'three', 'two']);
  });

  test('can do without a first one that is too big', async () => {
    vi.mocked(readImageSize).mockResolvedValueOnce({ x: 6001, y: 10 });
    renderApp('/magic', { signedIn: true });
    await userEvent.upload(await screen.findByLabelText('Image file'), files);
    expect(await screen.findByText('Image dimensions too big (Max 6000x6000)')).toBeVisible();
    expect(screen.getByRole('button', { name: 'Upload 3 images' })).toBeDisabled();
    await userEvent.click(screen.getByRole('button', { name: 'Skip this image' }));
    expect(await preview('two.png')).toBeVisible();
    expect(screen.getByText('This image opens here. The other one goes to My Images.')).toBeVisible();
  });

  test('stay if another picture replaces the first one, until they are canceled', async () => {
    renderApp('/magic', { signedIn: true });
    await userEvent.upload(await screen.findByLabelText('Image file'), files);
    const other = new File(['bytes'], 'other.png', { type: 'image/png' });
    fireEvent.paste(document.body, { clipboardData: { files: [other] } });
    expect(await preview('other.png')).toBeVisible();
    expect(screen.getByText('This image opens here. The other 2 go to My Images.')).toBeVisible();

    await userEvent.click(screen.getByRole('button', { name: 'Cancel' }));
    fireEvent.paste(document.body, { clipboardData: { files: [other] } });
    expect(await screen.findByRole('button', { name: 'Upload' })).toBeVisible();
  });

  test('replace a stored image that was selected', async () => {
    const api = Object.assign(new MockApi(), { images: [anImage()] });
    renderApp('/magic', { api, signedIn: true });
    await userEvent.click(await screen.findByRole('button', { name: /^Image of/ }));
    fireEvent.drop(screen.getByRole('main'), { dataTransfer: { files, types: ['Files'] } });
    expect(await preview('one.png')).toBeVisible();
    expect(screen.getByRole('button', { name: 'Upload 3 images' })).toBeVisible();

    // Another selected image does not bring them back.
    await userEvent.click(screen.getByRole('button', { name: /^Image of/ }));
    await userEvent.click(screen.getByRole('button', { name: 'Cancel' }));
    expect(await screen.findByText('Drop images here')).toBeVisible();
  });
});

describe('an image from the clipboard', () => {
  const copied = (type: string) => ({
    clipboardData: { files: [new File(['bytes'], 'copied.png', { type })] },
  });

  test.each(['/images', '/remove-background'])('is accepted on %s', async (path) => {
    renderApp(path, { signedIn: true });
    await screen.findByLabelText('Image file');
    fireEvent.paste(document.body, copied('image/png'));
    expect(await screen.findByRole('img', { name: 'Preview of copied.png' })).toBeVisible();
    expect(screen.getByRole('button', { name: 'Upload' })).toBeVisible();
  });

  test('is accepted while a control has the focus, except in a text field', async () => {
    renderApp('/images', { signedIn: true });
    await screen.findByLabelText('Image file');
    const control = document.createElement('input');
    document.body.append(control);
    fireEvent.paste(control, copied('image/png'));
    expect(screen.queryByRole('img', { name: 'Preview of copied.png' })).toBeNull();
    control.type = 'checkbox';
    fireEvent.paste(control, copied('image/png'));
    control.remove();
    expect(await screen.findByRole('img', { name: 'Preview of copied.png' })).toBeVisible();
  });

  test('is accepted from a visitor; other files are ignored', async () => {
    renderApp('/upscale');
    await screen.findByLabelText('Image file');
    fireEvent.paste(document.body, copied('text/plain'));
    expect(screen.queryByRole('img', { name: /^Preview/ })).toBeNull();
    fireEvent.paste(document.body, copied('image/png'));
    expect(await screen.findByRole('img', { name: 'Preview of copied.png' })).toBeVisible();
  });
});
