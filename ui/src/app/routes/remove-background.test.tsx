import { act, fireEvent, screen, waitFor } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { HttpResponse, http } from 'msw';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import { useFreeRuns } from '@/features/free/free-runs';
import { saveFile } from '@/lib/download';
import { readImageSize } from '@/lib/image-size';
import { AI_MADE_PARTS, aJob, anImage } from '@/testing/builders';
import { MockApi } from '@/testing/mock-api';
import { renderApp } from '@/testing/render-app';
import { server } from '@/testing/server';
import { toastsAreShown } from '@/testing/toasts';

vi.mock('@/lib/image-size', () => ({ readImageSize: vi.fn() }));
vi.mock('@/lib/download', () => ({ saveFile: vi.fn() }));
// jsdom has no database.
vi.mock('@/lib/kept-picture', () => {
  const kept = new Map<string, { jobId: string; file: File }>();
  return {
    takePicture: async () => null,
    keepOriginal: async (tool: string, jobId: string, file: File) => void kept.set(tool, { jobId, file }),
    keptOriginal: async (tool: string, jobId: string) => {
      const original = kept.get(tool);
      return original?.jobId === jobId ? original.file : null;
    },
    forgetOriginal: async (tool: string) => void kept.delete(tool),
  };
});

async function chooseAFile() {
  await userEvent.upload(
    await screen.findByLabelText('Image file'),
    new File(['bytes'], 'photo.png', { type: 'image/png' }),
  );
  const run = await screen.findByRole('button', { name: 'Remove Bg' });
  return run;
}

function paste(name: string) {
  const file = new File(['bytes'], name, { type: 'image/png' });
  fireEvent.paste(document.body, { clipboardData: { files: [file] } });
}

/** What the server answers once it is released. */
function held() {
  let release = () => {};
  const promise = new Promise<undefined>((resolve) => {
    release = () => resolve(undefined);
  });
  return { promise, release };
}

beforeEach(() => {
  vi.mocked(readImageSize).mockResolvedValue({ x: 800, y: 600 });
});

describe('the free tool of a visitor', () => {
  test('removes the background of one image, once', async () => {
    renderApp('/remove-background');
    const run = await chooseAFile();
    expect(screen.getByRole('link', { name: 'Remove Bg AI (Requires login)' })).toHaveAttribute(
      'href',
      '/signup',
    );
    await waitFor(() => expect(run).toBeEnabled());
    await userEvent.click(run);
    expect(await screen.findByRole('button', { name: 'Download' })).toBeVisible();
    expect(screen.getByRole('button', { name: 'Remove Bg' })).toHaveAttribute('aria-disabled', 'true');
  });

  test('refuses another run after Free Exists', async () => {
    renderApp('/background');
    server.use(
      http.post('*/api/free/remove-bg-fr', () =>
        HttpResponse.json({ detail: 'Free Exists' }, { status: 409 }),
      ),
    );
    const run = await chooseAFile();
    await waitFor(() => expect(run).toBeEnabled());
    await userEvent.click(run);
    expect((await screen.findAllByText('Free background remove image already created'))[0]).toBeVisible();
    expect(run).toHaveAttribute('aria-disabled', 'true');
  });

  test('says Failed to remove background, try again later', async () => {
    renderApp('/remove-background');
    server.use(http.post('*/api/free/remove-bg-fr', () => new HttpResponse(null, { status: 503 })));
    const run = await chooseAFile();
    await waitFor(() => expect(run).toBeEnabled());
    await userEvent.click(run);
    expect(await screen.findByText('Failed to remove background, try again later')).toBeVisible();
    await waitFor(() => expect(run).toBeEnabled());
  });

  test.each([
    ['is refused', () => HttpResponse.json({ detail: 'It is damaged.' }, { status: 422 })],
    [
      'fails in its run',
      () =>
        HttpResponse.json(
          aJob({ state: 'failed', failure: { code: 'image_unreadable', detail: 'It is damaged.' } }),
          { status: 202 },
        ),
    ],
  ])('proposes no other attempt for a picture that %s', async (_, answer) => {
    renderApp('/remove-background');
    server.use(http.post('*/api/free/remove-bg-fr', answer));
    const run = await chooseAFile();
    await waitFor(() => expect(run).toBeEnabled());
    await userEvent.click(run);
    expect(await screen.findByText('It is damaged.', { selector: 'main *' })).toBeVisible();
    await toastsAreShown();
    expect(screen.queryByText('Failed to remove background, try again later')).toBeNull();
  });

  test.each([
    [
      'The picture is lost. You have not been charged; please try another file.',
      'The picture is lost. Please try another file.',
    ],
    ['The picture is lost. You have not been charged.', 'The picture is lost.'],
  ])('says nothing of a charge: %s', async (detail, text) => {
    renderApp('/remove-background');
    const failure = { code: 'image_unreadable', detail };
    server.use(
      http.post('*/api/free/remove-bg-fr', () =>
        HttpResponse.json(aJob({ state: 'failed', failure }), { status: 202 }),
      ),
    );
    const run = await chooseAFile();
    await waitFor(() => expect(run).toBeEnabled());
    await userEvent.click(run);
    expect(await screen.findByText(text)).toBeVisible();
  });

  test.each([
    [422, 'It is damaged.'],
    [429, 'Try again in 7 minutes.'],
  ])('says once why it failed with %i, and as a toast to those who have left', async (status, text) => {
    const answer = held();
    const { router, unmount } = renderApp('/remove-background');
    server.use(
      http.post('*/api/free/remove-bg-fr', async () => {
        await answer.promise;
        return HttpResponse.json({ detail: text }, { status });
      }),
    );
    const start = async () => {
      const run = await chooseAFile();
      await waitFor(() => expect(run).toBeEnabled());
      await userEvent.click(run);
    };
    await start();
    answer.release();
    expect(await screen.findByText(text)).toBeVisible();
    await toastsAreShown();
    expect(screen.getAllByText(text)).toHaveLength(1);
    expect(screen.queryByText('Failed to remove background, try again later')).toBeNull();

    await userEvent.click(screen.getByRole('button', { name: 'Cancel' }));
    const later = held();
    server.use(
      http.post('*/api/free/remove-bg-fr', async () => {
        await later.promise;
        return HttpResponse.json({ detail: text }, { status });
      }),
    );
    await start();
    await act(() => router.navigate('/pricing'));
    await screen.findByRole('heading', { name: 'Flexible Pricing. Full Control' });
    later.release();
    expect(await screen.findByText(text)).toBeVisible();
    unmount();
  });

  test.each([
    [409, 'Free Exists', 'Free background remove image already created'],
    [429, 'Try again in 7 minutes.', 'Try again in 7 minutes.'],
  ])('runs on another picture that was pasted after %i', async (status, detail, text) => {
    const { api } = renderApp('/remove-background');
    server.use(http.post('*/api/free/remove-bg-fr', () => HttpResponse.json({ detail }, { status })));
    const run = await chooseAFile();
    await waitFor(() => expect(run).toBeEnabled());
    await userEvent.click(run);
    const notice = await screen.findByText(text, { selector: 'main *' });

    server.resetHandlers(...api.handlers());
    paste('other.png');
    expect(await screen.findByRole('img', { name: 'Preview of other.png' })).toBeVisible();
    expect(notice).not.toBeInTheDocument();
    await userEvent.click(run);
    expect(await screen.findByRole('button', { name: 'Download' })).toBeVisible();
  });

  test('shows the progress over the picture, as it does for users', async () => {
    const api = Object.assign(new MockApi(), { stepMs: 200 });
    renderApp('/remove-background', { api });
    const run = await chooseAFile();
    await waitFor(() => expect(run).toBeEnabled());
    await userEvent.click(run);
    const progress = await screen.findByRole('progressbar', { name: 'Progress' });
    const picture = screen.getByRole('img', { name: /^Preview of/ });
    // biome-ignore lint/style/noNonNullAssertion: the frame around the picture.
    expect(picture.parentElement!.parentElement).toContainElement(progress);
  });

  test('keeps the focus when a file is chosen, and when that is canceled', async () => {
    renderApp('/remove-background');
    const input = await screen.findByLabelText('Image file');
    screen.getByRole('button', { name: 'Choose a file' }).focus();
    // A file dialog returns the focus to the button.
    fireEvent.change(input, { target: { files: [new File(['bytes'], 'photo.png', { type: 'image/png' })] } });
    const cancel = await screen.findByRole('button', { name: 'Cancel' });
    expect(screen.getByRole('main')).toHaveFocus();
    await userEvent.click(cancel);
    await screen.findByRole('button', { name: 'Choose a file' });
    expect(screen.getByRole('main')).toHaveFocus();
  });

  test('shows the place of the next picture, far above the button that asks for it', async () => {
    const scrollTo = vi.spyOn(window, 'scrollTo');
    renderApp('/remove-background');
    const run = await chooseAFile();
    await waitFor(() => expect(run).toBeEnabled());
    await userEvent.click(run);
    scrollTo.mockClear();
    await userEvent.click(await screen.findByRole('button', { name: 'Choose another image' }));
    expect(scrollTo).toHaveBeenCalledWith(0, 0);
  });

  test('disables the action when the image is too large', async () => {
    vi.mocked(readImageSize).mockResolvedValue({ x: 10, y: 6001 });
    renderApp('/remove-background');
    const run = await chooseAFile();
    expect(await screen.findByText('Image dimensions too big (Max 6000x6000)')).toBeVisible();
    expect(run).toBeDisabled();
  });
});

describe('the download of a visitor', () => {
  async function finish(api = new MockApi()) {
    renderApp('/remove-background', { api });
    const run = await chooseAFile();
    await waitFor(() => expect(run).toBeEnabled());
    await userEvent.click(run);
    await screen.findByRole('button', { name: 'Download' });
    return api;
  }
  const save = async (format: string) => {
    await userEvent.selectOptions(screen.getByLabelText('Format'), format);
    await userEvent.click(screen.getByRole('button', { name: 'Download' }));
  };

  test('is the stored PNG, or rendered by the API for whoever has the signed URL', async () => {
    const api = await finish(
      Object.assign(new MockApi(), { pictureOf: () => '/api/files/a?expires=9&signature=b' }),
    );
    await save('PNG');
    await waitFor(() => expect(saveFile).toHaveBeenLastCalledWith(expect.anything(), 'downloaded_image.png'));
    expect(api.calls).toContain('GET /api/files/a?expires=9&signature=b');
    expect(api.renders).toEqual([]);

    await save('JPG');
    await waitFor(() => expect(saveFile).toHaveBeenLastCalledWith(expect.anything(), 'downloaded_image.jpg'));
    expect(api.calls.at(-1)).toBe('POST /api/files/a/render?expires=9&signature=b');
    const plain = { quality: 90, background: null, shadow: null, crop: null };
    expect(api.renders.at(-1)?.options).toEqual({ ...plain, format: 'jpg' });

    await userEvent.click(screen.getByRole('button', { name: 'Background' }));
    await userEvent.click(await screen.findByRole('radio', { name: 'Sky' }));
    await save('PNG');
    await waitFor(() => expect(api.renders).toHaveLength(2));
    expect(api.renders.at(-1)?.options).toEqual({
      ...plain,
      format: 'png',
      background: { color: '#cfe5fb' },
    });
  });

  test('says why it failed', async () => {
    await finish();
    const detail = 'Too many uploads from your network. Try again in 7 minutes, or sign up.';
    server.use(http.post('*/api/files/:id/render', () => HttpResponse.json({ detail }, { status: 429 })));
    await save('WebP');
    expect(await screen.findByText(detail)).toBeVisible();
    expect(screen.getByText('Failed to download image')).toBeVisible();
  });

  test('says how the picture was made, if the file does', async () => {
    await finish(Object.assign(new MockApi(), { source: AI_MADE_PARTS }));
    expect(await screen.findByText(/^This file says that AI made parts of the picture\./)).toBeVisible();
    expect(screen.getByRole('link', { name: 'See what it says' })).toHaveAttribute('href', '/verify');
  });

  test('of a picture that the API returned at once can only be a PNG', async () => {
    const picture = () => HttpResponse.arrayBuffer(new ArrayBuffer(8));
    renderApp('/remove-background');
    server.use(http.post('*/api/free/remove-bg-fr', picture));
    const run = await chooseAFile();
    await waitFor(() => expect(run).toBeEnabled());
    await userEvent.click(run);
    await screen.findByRole('button', { name: 'Download' });
    await save('JPG');
    expect(await screen.findByText(/^This result can only be saved as a PNG/)).toBeVisible();
  });
});

describe('a visitor who leaves', () => {
  const failed = 'Failed to remove background, try again later';

  async function startRun() {
    const run = await chooseAFile();
    await waitFor(() => expect(run).toBeEnabled());
    await userEvent.click(run);
  }

  /** As a reload does. */
  const forgetMemory = () => useFreeRuns.setState({}, true);

  async function leaveAndComeBack(router: ReturnType<typeof renderApp>['router']) {
    await act(() => router.navigate('/pricing'));
    await screen.findByRole('heading', { name: 'Flexible Pricing. Full Control' });
    await act(() => router.navigate('/remove-background'));
  }

  test('finds the run and its result again, on another page and after a reload', async () => {
    const api = Object.assign(new MockApi(), { stepMs: 60 });
    const { router, unmount } = renderApp('/remove-background', { api });
    await startRun();
    await screen.findByRole('progressbar');
    await leaveAndComeBack(router);
    await screen.findByRole('progressbar');
    expect(await screen.findByRole('button', { name: 'Download' })).toBeVisible();

    unmount();
    forgetMemory();
    renderApp('/remove-background', { api });
    expect(await screen.findByRole('button', { name: 'Download' })).toBeVisible();
    // The original is still in this browser.
    expect(await screen.findByRole('button', { name: 'Compare' })).toBeVisible();
    expect(api.calls.filter((call) => call.startsWith('POST'))).toHaveLength(1);

    await userEvent.click(screen.getByRole('button', { name: 'Choose another image' }));
    expect(await screen.findByRole('button', { name: 'Choose a file' })).toBeVisible();
  });

  test('finds a picture that was still being uploaded, and then its result', async () => {
    const { router, api } = renderApp('/remove-background');
    const upload = held();
    // Undefined leaves the call to the mock API.
    server.use(http.post('*/api/free/remove-bg-fr', () => upload.promise));
    await startRun();
    await leaveAndComeBack(router);
    expect(await screen.findByRole('progressbar', { name: 'Upload' })).toBeVisible();
    upload.release();
    expect(await screen.findByRole('button', { name: 'Compare' })).toBeVisible();
    expect(api.jobs).toHaveLength(1);
  });

  test('can cancel the run afterwards and start another one', async () => {
    const api = Object.assign(new MockApi(), { stepMs: 200 });
    const { router, unmount } = renderApp('/remove-background', { api });
    const look = held();
    server.use(http.get('*/api/jobs/:id', () => look.promise));
    await startRun();
    await screen.findByRole('progressbar');
    await leaveAndComeBack(router);
    await userEvent.click(await screen.findByRole('button', { name: 'Cancel' }));
    await waitFor(() => expect(api.jobs[0]?.state).toBe('cancelled'));
    await startRun();
    await waitFor(() => expect(api.jobs).toHaveLength(2));
    look.release();
    expect(await screen.findByRole('button', { name: 'Download' })).toBeVisible();
    expect(screen.queryByText(failed)).toBeNull();

    unmount();
    forgetMemory();
    renderApp('/remove-background', { api });
    expect(await screen.findByRole('button', { name: 'Download' })).toBeVisible();
  });

  test('can run again after the run was canceled in another tab', async () => {
    const api = Object.assign(new MockApi(), { stepMs: 200 });
    renderApp('/remove-background', { api });
    await startRun();
    await screen.findByRole('progressbar');
    Object.assign(api.jobs[0] ?? {}, { state: 'cancelled' });
    const run = screen.getByRole('button', { name: 'Remove Bg' });
    await waitFor(() => expect(run).not.toHaveAttribute('aria-disabled', 'true'));
    expect(screen.queryByText(/HTTP error/)).toBeNull();
    expect(screen.queryByText(failed)).toBeNull();
  });

  test('finds the result, and not a picture that was pasted on another page', async () => {
    const { router } = renderApp('/remove-background');
    await startRun();
    await screen.findByRole('button', { name: 'Download' });
    await act(() => router.navigate('/pricing'));
    await screen.findByRole('heading', { name: 'Flexible Pricing. Full Control' });
    paste('other.png');
    expect(await screen.findByText('This page can’t take another image now')).toBeVisible();
    expect(await screen.findByRole('button', { name: 'Download' })).toBeVisible();
    expect(screen.queryByRole('button', { name: 'Remove Bg' })).toBeNull();
  });

  test('gets the same result for the same file, instead of a refusal', async () => {
    const api = new MockApi();
    renderApp('/remove-background', { api });
    await startRun();
    await userEvent.click(await screen.findByRole('button', { name: 'Choose another image' }));
    await startRun();
    expect(await screen.findByRole('button', { name: 'Download' })).toBeVisible();
    expect(screen.queryByText('Free background remove image already created')).toBeNull();
    expect(api.jobs).toHaveLength(1);
  });

  test('is offered the result for an hour, and then a new run', async () => {
    const at = Date.now() - 3_600_001;
    sessionStorage.setItem('retouch-free-run-remove-background', JSON.stringify({ jobId: 'job-1', at }));
    const { api } = renderApp('/remove-background');
    expect(await screen.findByRole('button', { name: 'Choose a file' })).toBeVisible();
    expect(api.calls).not.toContain('GET /api/jobs/job-1');
  });

  test.each(['the run', 'its result'])(
    'chooses another image if the server no longer has %s',
    async (missing) => {
      const api = new MockApi();
      const job = api.startJob({ id: 'gone', tier: 'visitor', state: 'done', results: [] });
      if (missing === 'the run') api.jobs = [];
      const kept = JSON.stringify({ jobId: job.id, at: Date.now() });
      sessionStorage.setItem('retouch-free-run-remove-background', kept);
      renderApp('/remove-background', { api });
      expect(await screen.findByRole('button', { name: 'Choose a file' })).toBeVisible();
      expect(screen.queryByRole('alert')).toBeNull();
    },
  );

  test('gives the free run back by canceling it', async () => {
    const api = Object.assign(new MockApi(), { stepMs: 200 });
    renderApp('/remove-background', { api });
    await startRun();
    await screen.findByRole('progressbar');
    await userEvent.click(screen.getByRole('button', { name: 'Cancel' }));
    await waitFor(() => expect(api.jobs[0]?.state).toBe('cancelled'));
  });
});

describe('the picker of a signed-in user', () => {
  test('opens the tool page of a selected image', async () => {
    const api = Object.assign(new MockApi(), { images: [anImage()] });
    const { router } = renderApp('/remove-background', { api, signedIn: true });
    await userEvent.click(await screen.findByRole('button', { name: /^Image of/ }));
    await userEvent.click(screen.getByRole('button', { name: 'Select' }));
    await waitFor(() => expect(router.state.location.pathname).toBe('/remove-background/image-1'));
  });

  test('Cancel brings the upload panel back', async () => {
    const api = Object.assign(new MockApi(), { images: [anImage()] });
    renderApp('/remove-background', { api, signedIn: true });
    await userEvent.click(await screen.findByRole('button', { name: /^Image of/ }));
    await userEvent.click(screen.getByRole('button', { name: 'Cancel' }));
    expect(screen.getByRole('button', { name: 'Choose files' })).toBeVisible();
  });
});
