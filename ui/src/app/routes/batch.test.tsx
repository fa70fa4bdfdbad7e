import { act, fireEvent, screen, waitFor, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { unzipSync } from 'fflate';
import { HttpResponse, http } from 'msw';
import { beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { updateBatch, updateItem, useBatches } from '@/features/batch/batch-store';
import { saveFile } from '@/lib/download';
import { formatBytes } from '@/lib/format';
import { readImageSize } from '@/lib/image-size';
import { switchLanguage } from '@/lib/language';
import { aFile, choose, resetBatches, rowOf, runs, start, three } from '@/testing/batch';
import { aConfig, aJob, anImage, aResult } from '@/testing/builders';
import { MockApi } from '@/testing/mock-api';
import { renderApp } from '@/testing/render-app';
import { server } from '@/testing/server';
import { aSignInPage } from '@/testing/sign-in-page';

// jsdom cannot decode images or save files.
vi.mock('@/lib/image-size', () => ({ readImageSize: vi.fn() }));
vi.mock('@/lib/format', async (load) => {
  const real = await load<typeof import('@/lib/format')>();
  return { ...real, formatBytes: vi.fn(real.formatBytes) };
});
vi.mock('@/lib/download', () => ({ saveFile: vi.fn() }));

beforeEach(resetBatches);

describe('a batch of files', () => {
  test('is listed with its total price, and nothing is sent before the start', async () => {
    const { api } = renderApp('/remove-background', { signedIn: true });
    const list = await choose(three());
    await waitFor(() => expect(within(list).getAllByText('Ready')).toHaveLength(3));
    expect(screen.getByText('3 images × 5 credits = 15 credits')).toBeVisible();
    expect(await screen.findByText('You have 20 credits.')).toBeVisible();
    expect(api.calls.filter((call) => call.startsWith('POST'))).toEqual([]);
  });

  test('uploads and runs each file, and refetches the credits', async () => {
    const { api } = renderApp('/remove-background', { signedIn: true });
    await choose(three());
    await start(3);
    expect(await screen.findByText('3 of 3 done')).toBeVisible();
    expect(api.images).toHaveLength(3);
    expect(runs(api)).toHaveLength(3);
    expect(new Set(api.idempotencyKeys).size).toBe(3);
    expect(await screen.findByRole('link', { name: 'credits 5' })).toBeVisible();
    const page = screen.getByRole('link', { name: 'Open one.png' }).getAttribute('href');
    expect(page).toMatch(/^\/remove-background\/image-\d+$/);
  });

  test('takes more files that are dropped on it, until it starts', async () => {
    renderApp('/remove-background', { signedIn: true });
    const list = await choose(three());
    const drop = (name: string, type = 'image/png') =>
      fireEvent.drop(list, {
        dataTransfer: { files: [new File(['bytes'], name, { type })], types: ['Files'] },
      });
    drop('four.png');
    drop('notes.txt', 'text/plain');
    // A thumbnail of the list that is dragged by accident.
    fireEvent.drop(list, {
      dataTransfer: {
        files: [new File(['bytes'], 'one.png', { type: 'image/png' })],
        types: ['Files', 'text/uri-list', 'text/html'],
      },
    });
    await waitFor(() => expect(within(list).getAllByText('Ready')).toHaveLength(4));
    expect(within(list).getByText('four.png')).toBeVisible();
    await start(4);
    drop('five.png');
    expect(await screen.findByText(/of 4 done/)).toBeVisible();
    expect(screen.queryByText('five.png')).toBeNull();
  });

  test('has one action for all files, and free runs cost nothing', async () => {
    vi.mocked(readImageSize).mockResolvedValue({ x: 500, y: 500 });
    const { api } = renderApp('/upscale', { signedIn: true });
    await choose(three());
    expect(await screen.findByText('3 images × 3 credits = 9 credits')).toBeVisible();
    expect(screen.queryByText(/same result as the free run/)).toBeNull();
    await userEvent.click(screen.getByRole('radio', { name: /^Upscale 4X/ }));
    expect(screen.getByText('3 images × 6 credits = 18 credits')).toBeVisible();
    await userEvent.click(screen.getByRole('radio', { name: /^Free Upscale/ }));
    expect(screen.getByText('3 images, free')).toBeVisible();
    await start(3);
    expect(await screen.findByText('3 of 3 done')).toBeVisible();
    expect(runs(api, '/api/upscale/upscale-free')).toHaveLength(3);
    expect(api.user.credits).toBe(20);
  });

  test('prefers a free run that gives the same results, and says so', async () => {
    renderApp('/upscale', { signedIn: true });
    const list = await choose(three());
    await waitFor(() => expect(within(list).getAllByText('Ready')).toHaveLength(3));
    expect(screen.getByRole('radio', { name: /^Free Upscale/ })).toBeChecked();
    expect(screen.getByText('3 images, free')).toBeVisible();
    const paid = screen.getByRole('radio', { name: /^Upscale 2X/ });
    expect(paid).toHaveAccessibleName(/3 credits · same result as the free run$/);
    await userEvent.click(paid);
    expect(screen.getByText('3 images × 3 credits = 9 credits')).toBeVisible();
  });

  test('compares no paid run with the free one on a server without paid runs', async () => {
    const config = aConfig();
    for (const offer of config.tools) offer.available = false;
    renderApp('/upscale', { signedIn: true, api: Object.assign(new MockApi(), { config }) });
    const list = await choose(three());
    await waitFor(() => expect(within(list).getAllByText('Ready')).toHaveLength(3));
    expect(screen.getByRole('radio', { name: /^Free Upscale/ })).toBeChecked();
    const paid = screen.getByRole('radio', { name: /^Upscale 2X/ });
    expect(paid).toHaveAccessibleName(/Not installed on this server$/);
  });

  test('says for how many files a paid run is no better than a free one', async () => {
    vi.mocked(readImageSize).mockResolvedValueOnce({ x: 500, y: 500 });
    renderApp('/upscale', { signedIn: true });
    await choose(three());
    const paid = screen.getByRole('radio', { name: /^Upscale 2X/ });
    await waitFor(() =>
      expect(paid).toHaveAccessibleName(/3 credits · same result as the free run for 2 of 3$/),
    );
    expect(paid).toBeChecked();
    expect(screen.getByRole('radio', { name: /^Upscale 4X/ })).toHaveAccessibleName(/6 credits$/);
  });

  test('rejects a file that is too large, with the reason, and runs the others', async () => {
    vi.mocked(readImageSize).mockResolvedValue({ x: 500, y: 500 }).mockResolvedValueOnce({ x: 1441, y: 10 });
    const { api } = renderApp('/upscale', { signedIn: true });
    await choose(three());
    expect(await screen.findByText('Image dimensions too big (Max 1440x1440)')).toBeVisible();
    expect(await screen.findByText('2 images × 3 credits = 6 credits')).toBeVisible();
    expect(screen.getByRole('heading', { name: '2 images' })).toBeVisible();
    await start(2);
    expect(await screen.findByText('2 of 2 done')).toBeVisible();
    expect(api.images).toHaveLength(2);
  });

  test('rejects a file that this server does not read before it is sent', async () => {
    const config = aConfig({ features: { payments: false, heic: false, avif: true } });
    renderApp('/upscale', { api: Object.assign(new MockApi(), { config }), signedIn: true });
    // The dialog does not offer the file, but a system may let people choose it.
    const user = userEvent.setup({ applyAccept: false });
    await user.upload(await screen.findByLabelText('Image file'), [aFile('one.heic', ''), aFile('two.png')]);
    expect(await screen.findByText('HEIC files cannot be read here.', { exact: false })).toBeVisible();
    expect(screen.getByRole('heading', { name: '1 image' })).toBeVisible();
  });

  test('shows no preview for a file that is not an image', async () => {
    vi.mocked(readImageSize).mockRejectedValueOnce(new Error('not decoded'));
    renderApp('/upscale', { signedIn: true });
    await choose([aFile('broken.png'), aFile('two.png')]);
    expect(await screen.findByText(/can’t read this file as an image/)).toBeVisible();
    expect(rowOf('broken.png').querySelector('img')).toBeNull();
    expect(rowOf('two.png').querySelector('img')).not.toBeNull();
  });

  test('allows files to be removed, and closes with the last one', async () => {
    renderApp('/remove-background', { signedIn: true });
    await choose([aFile('one.png'), aFile('two.png')]);
    await userEvent.click(screen.getByRole('button', { name: 'Remove one.png' }));
    expect(screen.queryByText('one.png')).toBeNull();
    expect(screen.getByRole('heading', { name: '1 image' })).toHaveFocus();
    await userEvent.click(screen.getByRole('button', { name: 'Remove two.png' }));
    expect(await screen.findByRole('button', { name: 'Choose files' })).toBeVisible();
  });

  test('removes one file with a double click, not two', async () => {
    renderApp('/remove-background', { signedIn: true });
    await choose([aFile('one.png'), aFile('two.png')]);
    fireEvent.click(screen.getByRole('button', { name: 'Remove one.png' }), { detail: 1 });
    fireEvent.click(screen.getByRole('button', { name: 'Remove two.png' }), { detail: 2 });
    expect(screen.queryByText('one.png')).toBeNull();
    expect(screen.getByText('two.png')).toBeVisible();
  });

  test('ignores files that are not images, and does not start for a single image', async () => {
    renderApp('/remove-background', { signedIn: true });
    await userEvent.upload(
      await screen.findByLabelText('Image file'),
      [aFile('one.png'), aFile('notes.txt', 'text/plain')],
      { applyAccept: false },
    );
    expect(await screen.findByRole('img', { name: 'Preview of one.png' })).toBeVisible();
  });
});

test('the rows of a batch follow a change of the language', async () => {
  onTestFinished(() => act(() => switchLanguage('en')));
  renderApp('/remove-background', { signedIn: true });
  await choose([aFile('one.png'), aFile('two.png')]);
  await start(2);
  await screen.findByText('2 of 2 done');
  await act(() => switchLanguage('de'));
  expect(screen.getByText('2 von 2 fertig')).toBeVisible();
  expect(within(rowOf('one.png')).getByText('Fertig')).toBeVisible();
  expect(within(rowOf('two.png')).getByRole('link', { name: 'two.png öffnen' })).toBeVisible();
});

test('a large batch stores and shows what changes, and not everything with every bit of progress', async () => {
  renderApp('/remove-background', { signedIn: true });
  await choose([aFile('one.png'), aFile('two.png')]);
  const [item] = useBatches.getState()['remove-background']?.items ?? [];
  if (!item) throw new Error('no item');
  const url = '/api/files/a?expires=1';
  const items = Array.from({ length: 300 }, (_, index) => ({
    ...item,
    id: `${index}`,
    name: `${index}.png`,
    image: anImage({ id: `image-${index}`, url }),
    jobId: `job-${index}`,
    state: { kind: 'done' as const, result: aResult({ url, thumbnailUrl: url }) },
  }));
  act(() => updateBatch('remove-background', () => ({ hasStarted: true, items })));
  expect(rowOf('299.png').querySelector('img')).toHaveAttribute('loading', 'lazy');

  const setItem = vi.spyOn(Storage.prototype, 'setItem');
  vi.mocked(formatBytes).mockClear();
  for (let done = 1; done <= 100; done += 1) {
    const state = { kind: 'running', fraction: done / 100, count: null, etaSeconds: null } as const;
    act(() => updateItem('remove-background', '7', { state }));
  }
  expect(rowOf('7.png')).toHaveTextContent('Running 100%');
  expect(formatBytes).toHaveBeenCalledTimes(100);
  window.dispatchEvent(new Event('pagehide'));
  const written = setItem.mock.calls.filter(([key]) => key === 'retouch-batches');
  // A machine that is busy may take longer than the delay.
  expect(written.length).toBeLessThan(20);
  expect(written.at(-1)?.[1]).toContain('"fraction":1');
  expect(written.at(-1)?.[1]).not.toContain('expires');
});

describe('the ZIP file of all results', () => {
  async function zipOfTwo(api = new MockApi()) {
    renderApp('/remove-background', { api, signedIn: true });
    server.use(http.get('*/api/files/:id', () => HttpResponse.arrayBuffer(bytesOf('a picture'))));
    await choose([aFile('one.png'), aFile('two.png')]);
    await start(2);
    await screen.findByText('2 of 2 done');
    return () => userEvent.click(screen.getByRole('button', { name: 'Download all (ZIP)' }));
  }

  test('has the results so far while the batch runs, and says how many', async () => {
    renderApp('/remove-background', { signedIn: true });
    server.use(
      http.post('*/api/rmbg-images/remove-bg-ai', () => HttpResponse.json(aJob(), { status: 202 }), {
        once: true,
      }),
    );
    await choose([aFile('one.png'), aFile('two.png')]);
    await start(2);
    expect(await screen.findByText('1 of 2 done')).toBeVisible();
    expect(screen.getByRole('button', { name: 'Download 1 so far (ZIP)' })).toBeEnabled();
  });

  test('omits a result that was deleted with its image, and says so', async () => {
    const api = new MockApi();
    const download = await zipOfTwo(api);
    api.jobs = api.jobs.slice(1);
    await download();
    expect(await screen.findByText('The ZIP file lacks 1 result that was deleted')).toBeVisible();
    const [blob] = vi.mocked(saveFile).mock.calls.at(-1) ?? [];
    expect(Object.keys(unzipSync(await readBytes(blob as Blob)))).toHaveLength(1);
  });

  test('survives a lost connection and a busy server', async () => {
    const download = await zipOfTwo();
    const files = vi.fn();
    server.use(
      http.get('*/api/jobs/:id', () => HttpResponse.error(), { once: true }),
      http.get(
        '*/api/files/:id',
        () => new HttpResponse(null, { status: 503, headers: { 'Retry-After': '1' } }),
        {
          once: true,
        },
      ),
      http.get('*/api/files/:id', files),
    );
    await download();
    await waitFor(() => expect(saveFile).toHaveBeenCalledOnce(), { timeout: 10_000 });
    expect(files).toHaveBeenCalledTimes(2);
    const [blob] = vi.mocked(saveFile).mock.calls.at(-1) ?? [];
    expect(Object.keys(unzipSync(await readBytes(blob as Blob)))).toEqual(['one.png', 'two.png']);
    expect(screen.queryByText('Failed to download image')).toBeNull();
  });

  test('can be canceled while it waits for the network', async () => {
    const download = await zipOfTwo();
    server.use(http.get('*/api/files/:id', () => HttpResponse.error()));
    vi.spyOn(navigator, 'onLine', 'get').mockReturnValue(false);
    await download();
    await userEvent.click(screen.getByRole('button', { name: 'Cancel download' }));
    expect(await screen.findByRole('button', { name: 'Download all (ZIP)' })).toBeEnabled();
    expect(screen.queryByRole('button', { name: 'Cancel download' })).toBeNull();
    expect(document.body).not.toHaveFocus();
    expect(screen.queryByText('Failed to download image')).toBeNull();
    expect(saveFile).not.toHaveBeenCalled();
  });

  test('does not contain the page of a network that asks to sign in', async () => {
    const download = await zipOfTwo();
    server.use(http.get('*/api/files/:id', aSignInPage));
    // Ends the pauses between the attempts.
    const network = setInterval(() => window.dispatchEvent(new Event('online')), 50);
    onTestFinished(() => clearInterval(network));
    await download();
    expect(await screen.findByText('Failed to download image')).toBeVisible();
    expect(saveFile).not.toHaveBeenCalled();
  });

  test('is refused with the reason if it would be too large', async () => {
    const api = new MockApi();
    const download = await zipOfTwo(api);
    for (const job of api.jobs) for (const result of job.results) result.sizeBytes = 3_000_000_000;
    await download();
    expect(
      await screen.findByText('The results are too large for one ZIP file: download them one by one'),
    ).toBeVisible();
    expect(saveFile).not.toHaveBeenCalled();
  });

  test('names each result after its file, without duplicates', async () => {
    renderApp('/upscale', { signedIn: true });
    server.use(
      http.get('*/api/files/:id', ({ params }) =>
        HttpResponse.arrayBuffer(bytesOf(`picture of ${params.id}`)),
      ),
    );
    await choose([aFile('cat.png'), aFile('cat.png'), aFile('dog.jpg', 'image/jpeg')]);
    await start(3);
    await screen.findByText('3 of 3 done');
    await userEvent.click(screen.getByRole('button', { name: 'Download all (ZIP)' }));
    await waitFor(() => expect(saveFile).toHaveBeenCalled());
    const [blob, name] = vi.mocked(saveFile).mock.calls.at(-1) ?? [];
    expect(name).toBe('retouch-upscale.zip');
    const files = unzipSync(await readBytes(blob as Blob));
    expect(Object.keys(files).sort()).toEqual(['cat-2x (2).png', 'cat-2x.png', 'dog-2x.png']);
    const contents = Object.values(files).map((bytes) => new TextDecoder().decode(bytes));
    expect(new Set(contents).size).toBe(3);
    for (const content of contents) expect(content).toMatch(/^picture of upscaled-/);
  });
});

function bytesOf(text: string): ArrayBuffer {
  return new TextEncoder().encode(text).buffer as ArrayBuffer;
}

function readBytes(blob: Blob): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(new Uint8Array(reader.result as ArrayBuffer));
    reader.onerror = () => reject(reader.error);
    reader.readAsArrayBuffer(blob);
  });
}
