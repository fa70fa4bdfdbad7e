import { act, fireEvent, screen, waitFor, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { delay, HttpResponse, http } from 'msw';
import { beforeAll, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import type { Shape } from '@/features/mask/marks';
import { useMaskStore } from '@/features/mask/mask-store';
import { breakGet } from '@/testing/break-get';
import { anImage, aResult } from '@/testing/builders';
import { stubFrame } from '@/testing/frame';
import { MockApi } from '@/testing/mock-api';
import { renderApp } from '@/testing/render-app';
import { server } from '@/testing/server';
import { shortenTimeout } from '@/testing/shorten-timeout';

// jsdom has no canvas: the mock lists the shapes it would draw.
vi.mock('@/features/mask/mask-layer', () => ({
  default: ({ shapes }: { shapes: Shape[] }) => (
    <p data-testid="mask">{shapes.map(({ kind }) => kind).join(' ')}</p>
  ),
}));
vi.mock('@/features/mask/read-mask', () => ({
  readMask: async () => ({ kind: 'area', spans: [0, 0, 3] }),
}));

const withImage = (change: Partial<MockApi> = {}) =>
  Object.assign(new MockApi(), { images: [anImage()], ...change });
const open = (api: MockApi, path = '/magic/image-1') => renderApp(path, { api, signedIn: true });

const surface = () => screen.findByRole('application', { name: 'Image to draw on' });
const picture = async () => (await surface()).querySelector('img')?.getAttribute('src');
const mask = () => screen.findByTestId('mask');
const field = () => screen.findByRole('textbox', { name: 'Prompt' });
const press = async (name: string) => userEvent.click(await screen.findByRole('button', { name }));
const countOf = (api: MockApi, start: string) => api.calls.filter((call) => call.startsWith(start)).length;

async function draw(x = 100) {
  const image = await surface();
  await mask();
  fireEvent.pointerDown(image, { pointerId: 1, clientX: x, clientY: 100, button: 0, buttons: 1 });
  fireEvent.pointerMove(image, { pointerId: 1, clientX: x + 50, clientY: 120, buttons: 1 });
  fireEvent.pointerUp(image, { pointerId: 1, clientX: x + 50, clientY: 120 });
}

async function start() {
  const button = await screen.findByRole('button', { name: 'Magic Fix' });
  await waitFor(() => expect(button).toBeEnabled());
  await userEvent.click(button);
}

/** Runs one fix, and waits until the editor shows its result. */
async function fix(api: MockApi, x = 100) {
  const runs = api.fixed.length;
  await draw(x);
  if ((await field()).textContent === '') fireEvent.change(await field(), { target: { value: 'remove it' } });
  await start();
  await waitFor(() => expect(api.fixed).toHaveLength(runs + 1));
  await waitFor(async () => expect(await picture()).toBe(api.fixed.at(-1)?.url));
}

// The first test would compile the page in its own time, which on a busy machine is all it has.
beforeAll(async () => {
  await Promise.all([import('./magic-image'), import('@/features/runs/job-progress')]);
}, 60_000);

beforeEach(() => {
  useMaskStore.setState({ brush: 'paint', brushSize: 20, takesAway: false, drafts: {} });
  stubFrame();
});

test('a mask is continued if a run was refused after an earlier one had failed unseen', async () => {
  const api = withImage({ isStreamBroken: true });
  open(api);
  const failure = { code: 'internal_error', detail: 'Something went wrong' };
  const answers = [
    () => HttpResponse.error(),
    () => HttpResponse.json(api.startJob({ tool: 'magic-fix', state: 'failed', failure }), { status: 202 }),
    () => HttpResponse.json({ detail: 'Not enough credits' }, { status: 402 }),
  ];
  const keys: (string | null)[] = [];
  server.use(
    http.post('*/api/magic-images/fix/:id', ({ request }) => {
      keys.push(request.headers.get('Idempotency-Key'));
      return answers.shift()?.();
    }),
  );
  await draw();
  fireEvent.change(await field(), { target: { value: 'remove it' } });
  await start();
  expect(await screen.findByText('The connection was lost. Please try again.')).toBeVisible();
  await start();
  expect(await screen.findByText('Not enough credits')).toBeVisible();
  expect(keys[1]).toBe(keys[0]);
  expect(keys[2]).not.toBe(keys[0]);
  await draw(300);
  await waitFor(async () => expect((await mask()).textContent).toBe('paint paint'));
});

describe('a run whose answer is lost', () => {
  const lost = 'The connection was lost. Please try again.';

  /** Answers the next run with what `answer` returns, which gets the id of its image. */
  const answerRun = (answer: (imageId: string) => Response | Promise<Response>) =>
    server.use(
      http.post('*/api/magic-images/fix/:id', ({ params }) => answer(String(params.id)), { once: true }),
    );

  async function run(prompt = 'remove it') {
    await draw();
    fireEvent.change(await field(), { target: { value: prompt } });
    await start();
  }

  test.each(['/magic/image-1', '/magic/image-1?result=fixed-1'])(
    'is followed to its result once it shows up: %s',
    async (path) => {
      const first = aResult({ imageId: 'fixed-1', jobId: 'job-7', prompt: 'restore' });
      const api = withImage({ fixed: [first], stepMs: 30 });
      open(api, path);
      answerRun((imageId) => {
        api.prompts.push('remove it');
        setTimeout(() => api.runJob({ tool: 'magic-fix', imageId, prompt: 'remove it' }), 200);
        return HttpResponse.error();
      });
      await run();
      expect(await screen.findByText(lost)).toBeVisible();
      expect(await screen.findByRole('progressbar', { name: 'Progress' })).toBeVisible();
      await waitFor(() => expect(screen.queryByText(lost)).toBeNull());
      await waitFor(() => expect(api.fixed).toHaveLength(2));
      await waitFor(async () => expect(await picture()).toBe(api.fixed[1]?.url));
      expect((await mask()).textContent).toBe('');
    },
  );

  test('is followed to its result once the list shows it', async () => {
    const api = withImage({ isStreamBroken: true });
    const { queryClient } = open(api);
    await screen.findByText('No images to show');
    answerRun(() => HttpResponse.error());
    await run();
    expect(await screen.findByText(lost)).toBeVisible();
    api.fixed = [aResult({ imageId: 'made', jobId: 'lost', prompt: 'remove it', mode: 'remove' })];
    void queryClient.invalidateQueries({ queryKey: ['magic-images'] });
    await waitFor(async () => expect(await picture()).toBe('/api/files/made'));
    expect((await mask()).textContent).toBe('');
    expect(screen.queryByText(lost)).toBeNull();
  });

  test('has the same key after a visit to another page', async () => {
    const { router } = open(withImage());
    const keys: (string | null)[] = [];
    server.use(
      http.post('*/api/magic-images/fix/:id', ({ request }) => {
        keys.push(request.headers.get('Idempotency-Key'));
        return HttpResponse.error();
      }),
    );
    await run();
    expect(await screen.findByText(lost)).toBeVisible();
    await act(() => router.navigate('/terms'));
    await screen.findByRole('heading', { name: 'Terms of Service' });
    await act(() => router.navigate('/magic/image-1'));
    await start();
    await waitFor(() => expect(keys).toHaveLength(2));
    expect(keys[1]).toBe(keys[0]);
  });

  test('is not mistaken for a fix with another prompt', async () => {
    const api = withImage();
    open(api);
    answerRun(async (imageId) => {
      api.startJob({ tool: 'magic-fix', imageId, prompt: 'restore it' });
      await screen.findByRole('progressbar');
      return HttpResponse.error();
    });
    await run();
    expect(await screen.findByText(lost)).toBeVisible();
    expect((await mask()).textContent).toBe('paint');
  });

  test('is recognized by a prompt of several lines, whose breaks the API changes', async () => {
    const api = withImage();
    open(api);
    answerRun((imageId) => {
      api.startJob({ tool: 'magic-fix', imageId, prompt: 'remove it \nand that' });
      return HttpResponse.error();
    });
    await run('remove it\nand that');
    expect(await screen.findByRole('progressbar', { name: 'Progress' })).toBeVisible();
    await waitFor(() => expect(screen.queryByText(lost)).toBeNull());
  });
});

test('a mask is continued after a run that was canceled before its answer', async () => {
  const api = withImage();
  open(api);
  let accept = () => {};
  const held = new Promise<void>((resolve) => {
    accept = resolve;
  });
  server.use(
    http.post('*/api/magic-images/fix/:id', async () => {
      const job = api.startJob({ tool: 'magic-fix', prompt: 'remove it' });
      const answer = { ...job };
      await held;
      return HttpResponse.json(answer, { status: 202 });
    }),
  );
  await draw();
  fireEvent.change(await field(), { target: { value: 'remove it' } });
  await start();
  await press('Cancel');
  await screen.findByText('The run was canceled');
  accept();
  await new Promise((resolve) => setTimeout(resolve, 100));
  await draw(300);
  await waitFor(async () => expect((await mask()).textContent).toBe('paint paint'));
});

describe('a mask whose run has failed', () => {
  const failure = { code: 'internal_error', detail: 'Something went wrong' };

  /** Draws two strokes, runs, and visits another page. */
  async function runAndLeave(api: MockApi) {
    const { router } = open(api);
    await draw();
    await draw(200);
    fireEvent.change(await field(), { target: { value: 'remove it' } });
    await start();
    await screen.findByRole('progressbar');
    await act(() => router.navigate('/terms'));
    await screen.findByRole('heading', { name: 'Terms of Service' });
    return router;
  }

  async function expectContinued() {
    expect((await mask()).textContent).toBe('paint paint');
    await draw(300);
    await waitFor(async () => expect((await mask()).textContent).toBe('paint paint paint'));
  }

  test('on another page is continued', async () => {
    const api = withImage({ stepMs: 500 });
    await runAndLeave(api);
    Object.assign(api.jobs[0] ?? {}, { state: 'failed', failure });
    await userEvent.click(await screen.findByRole('link', { name: 'Show the image' }));
    await expectContinued();
  });

  test('during a reload is continued', async () => {
    const run = { jobId: 'job-7', marks: 2 };
    const done = [0, 50].map((x) => ({ kind: 'paint' as const, size: 40, points: [x, 0] }));
    useMaskStore.setState({
      drafts: { 'image-1': { done, undone: [], prompt: 'remove it', isSubmitted: true, run } },
    });
    const api = withImage();
    api.startJob({ id: 'job-7', tool: 'magic-fix', imageId: 'image-1', state: 'failed', failure });
    open(api);
    expect(await screen.findByText('Something went wrong')).toBeVisible();
    await expectContinued();
  });
});

describe('the results of the next image in a series', () => {
  const made = { resultId: 'one', imageId: 'image-1', tool: 'magic-fix' as const };
  const withSeries = () =>
    withImage({
      images: [anImage(), anImage({ id: 'image-2', madeFrom: made })],
      fixed: ['one', 'two'].map((imageId) => aResult({ imageId, prompt: 'remove it' })),
    });

  test('begin with the one that a link named', async () => {
    const { router } = open(withSeries(), '/magic/image-2');
    await screen.findByText('No images to show');
    await act(() => router.navigate('/magic/image-1', { state: { resultId: 'two' } }));
    expect(await screen.findByRole('button', { name: 'Result 2' })).toHaveAttribute('aria-pressed', 'true');
  });

  test('are no longer new once they were seen', async () => {
    const api = withSeries();
    const { router, unmount } = open(api, '/magic/image-2');
    await screen.findByText('No images to show');
    const createdAt = new Date(Date.now() + 3_600_000).toISOString();
    api.fixed = [...api.fixed, aResult({ imageId: 'three', prompt: 'remove it', createdAt })];
    await act(() => router.navigate('/magic/image-1'));
    expect(await screen.findByText('NEW')).toBeVisible();
    await act(() => router.navigate('/magic/image-2'));
    await screen.findByText('No images to show');
    unmount();
    open(api);
    await screen.findByRole('button', { name: 'Result 3' });
    expect(screen.queryByText('NEW')).toBeNull();
  });
});

describe('a finished fix', () => {
  test('becomes the picture of the editor, without its mask and with its prompt', async () => {
    const api = withImage();
    const { router } = open(api);
    await fix(api);
    expect((await mask()).textContent).toBe('');
    expect(await field()).toHaveValue('remove it');
    expect(router.state.location.search).toBe(`?result=${api.fixed[0]?.imageId}`);
    expect(screen.getByRole('heading', { name: 'Fixed so far' })).toBeVisible();
    // Nobody collects images they did not use.
    expect(countOf(api, 'POST /api/images/from-result')).toBe(0);
  });

  test('is continued with one stroke and one click, on an image made from it', async () => {
    const api = withImage();
    const { router } = open(api);
    await fix(api);
    const first = api.fixed[0]?.imageId;
    await press('Zoom in');
    await fix(api, 300);
    expect(api.calls).toContain(`POST /api/images/from-result/${first}`);
    const made = api.images.find(({ madeFrom }) => madeFrom?.resultId === first);
    expect(api.fixed[1]?.sourceImageId).toBe(made?.id);
    expect(router.state.location.pathname).toBe(`/magic/${made?.id}`);
    expect(api.prompts).toEqual(['remove it', 'remove it']);
    // Neither the zoom nor the focus is lost on the way.
    expect(screen.getByText('75%')).toBeVisible();
    expect(screen.getByRole('button', { name: 'Magic Fix' })).toHaveFocus();
  });

  test('gives way to the picture before it if it was deleted elsewhere', async () => {
    const api = withImage();
    const { router } = open(api);
    await fix(api);
    api.fixed = [];
    await draw(300);
    await start();
    await waitFor(() => expect(router.state.location.search).toBe(''));
    expect(await picture()).toBe(anImage().url);
    expect(screen.getByText('Result not found')).toBeVisible();
    expect(screen.getByRole('button', { name: 'Magic Fix' })).toHaveFocus();
  });

  test('gives way to Failed to find your image if that was deleted elsewhere', async () => {
    const api = withImage();
    open(api);
    await fix(api);
    api.fixed = [];
    api.images = [];
    server.use(http.get('*/api/magic-images/:id', () => new HttpResponse(null, { status: 404 })));
    await draw(300);
    await start();
    expect(await screen.findByRole('heading', { name: 'Failed to find your image' })).toBeVisible();
  });

  test('is undone to the picture before, with its mask, and redone, without another run', async () => {
    const api = withImage();
    open(api);
    await fix(api);
    await fix(api, 300);
    const [first, second] = api.fixed;
    await press('Undo');
    await waitFor(async () => expect(await picture()).toBe(first?.url));
    expect((await mask()).textContent).toBe('paint');
    await press('Undo');
    expect((await mask()).textContent).toBe('');
    await press('Undo');
    await waitFor(async () => expect(await picture()).toBe('/api/files/image-1'));
    expect((await mask()).textContent).toBe('paint');
    expect(screen.getByText('Back to the picture before the fix')).toBeInTheDocument();
    await press('Redo');
    await waitFor(async () => expect(await picture()).toBe(first?.url));
    await press('Redo');
    expect((await mask()).textContent).toBe('paint');
    await press('Redo');
    await waitFor(async () => expect(await picture()).toBe(second?.url));
    expect(screen.getByRole('button', { name: 'Redo' })).toHaveAttribute('aria-disabled', 'true');
    expect(api.prompts).toHaveLength(2);
  });

  test('keeps what is drawn while it runs, for the next one', async () => {
    const api = withImage({ stepMs: 30 });
    open(api);
    await draw();
    fireEvent.change(await field(), { target: { value: 'remove it' } });
    await start();
    await screen.findByRole('progressbar');
    await draw(300);
    await waitFor(async () => expect(await picture()).toBe(api.fixed.at(-1)?.url));
    expect((await mask()).textContent).toBe('paint');
    await press('Undo');
    expect((await mask()).textContent).toBe('');
  });

  test('keeps what is drawn after an undo while it runs', async () => {
    const api = withImage({ stepMs: 60 });
    open(api);
    await draw();
    await draw(200);
    fireEvent.change(await field(), { target: { value: 'remove it' } });
    await start();
    await screen.findByRole('progressbar');
    await press('Undo');
    await draw(300);
    await waitFor(async () => expect(await picture()).toBe(api.fixed.at(-1)?.url));
    expect((await mask()).textContent).toBe('paint');
  });

  test.each([
    ['drawn', async () => {}],
    ['drawn after an undo', () => press('Undo')],
  ])('keeps what is %s while the run is being sent, for the next one', async (_, undo) => {
    const api = withImage({ stepMs: 30 });
    open(api);
    let accept = () => {};
    const held = new Promise<void>((resolve) => {
      accept = resolve;
    });
    server.use(http.post('*/api/magic-images/fix/:id', () => held, { once: true }));
    await draw();
    fireEvent.change(await field(), { target: { value: 'remove it' } });
    await start();
    await undo();
    await draw(300);
    accept();
    await waitFor(async () => expect(await picture()).toBe(api.fixed.at(-1)?.url));
    expect((await mask()).textContent).toBe('paint');
  });

  test('is compared with the picture before, by holding and with a slider', async () => {
    const api = withImage();
    open(api);
    await fix(api);
    const hold = screen.getByRole('button', { name: 'Hold to see before' });
    fireEvent.pointerDown(hold);
    expect(await picture()).toBe('/api/files/image-1');
    fireEvent.blur(hold);
    await press('Slider');
    expect(await picture()).toBe(api.fixed[0]?.url);
    const slider = screen.getByRole('slider', { name: 'Compare before and after' });
    expect(slider.parentElement?.querySelector('img')).toHaveAttribute('src', '/api/files/image-1');
    await press('Slider');
    expect(screen.queryByRole('slider', { name: 'Compare before and after' })).toBeNull();
    expect(await mask()).toBeInTheDocument();
  });

  test('selects in the fixed picture, not in the one before', async () => {
    const api = withImage();
    open(api);
    await fix(api);
    await press('Select subject');
    await waitFor(async () => expect((await mask()).textContent).toBe('area'));
    const made = api.images.find(({ madeFrom }) => madeFrom !== null);
    expect(api.calls).toContain(`POST /api/images/${made?.id}/select`);
  });
});

describe('a fixed picture on a connection that is dead', () => {
  const never = () => http.post('*/api/images/from-result/:id', () => delay('infinite'), { once: true });

  test('does not hold up a run by its selection', async () => {
    const api = withImage();
    open(api);
    await fix(api);
    server.use(never());
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    fireEvent.click(screen.getByRole('button', { name: 'Select subject' }));
    expect(screen.getByRole('button', { name: 'Selecting…' })).toHaveAttribute('aria-disabled', 'true');
    await act(() => vi.advanceTimersByTimeAsync(30_000));
    vi.useRealTimers();
    expect(await screen.findByText('Failed to select, please try again')).toBeVisible();
    expect(screen.queryByRole('button', { name: 'Selecting…' })).toBeNull();
  });

  test('can be fixed again', async () => {
    shortenTimeout(120_000);
    const api = withImage();
    open(api);
    await fix(api);
    server.use(never());
    await draw(300);
    await start();
    expect(await screen.findByText('The connection was lost. Please try again.')).toBeVisible();
    await start();
    await waitFor(() => expect(api.fixed).toHaveLength(2));
  });
});

describe('the place in a series', () => {
  const fixed = () => aResult({ imageId: 'fixed-1', jobId: 'job-7', prompt: 'remove it', mode: 'remove' });
  const draftOfRun = {
    done: [{ kind: 'paint' as const, size: 40, points: [0, 0] }],
    undone: [],
    prompt: 'remove it',
    isSubmitted: true,
    run: { jobId: 'job-7', marks: 1 },
  };

  test('survives a reload', async () => {
    open(withImage({ fixed: [fixed()] }), '/magic/image-1?result=fixed-1');
    await waitFor(async () => expect(await picture()).toBe('/api/files/fixed-1'));
    await press('Undo');
    await waitFor(async () => expect(await picture()).toBe('/api/files/image-1'));
  });

  test('moves on to a run that ended while the page was away', async () => {
    useMaskStore.setState({ drafts: { 'image-1': draftOfRun } });
    open(withImage({ fixed: [fixed()] }));
    await waitFor(async () => expect(await picture()).toBe('/api/files/fixed-1'));
    expect((await mask()).textContent).toBe('');
  });

  test('falls back to the image if the result is gone', async () => {
    const { router } = open(withImage(), '/magic/image-1?result=fixed-1');
    await waitFor(async () => expect(await picture()).toBe('/api/files/image-1'));
    expect(router.state.location.search).toBe('');
  });

  test('is kept while the results load: nothing runs on the picture before', async () => {
    useMaskStore.setState({ drafts: { 'image-1': draftOfRun } });
    const api = withImage({ fixed: [fixed()] });
    const { router } = open(api, '/magic/image-1?result=fixed-1');
    const mend = breakGet('*/api/magic-images/:id');
    const editor = await screen.findByRole('region', { name: 'Original' });
    expect(await within(editor).findByText('Failed to load magic fix images')).toBeVisible();
    expect(await field()).toHaveValue('');
    expect(screen.getByRole('button', { name: 'Magic Fix' })).toBeDisabled();
    mend();
    await userEvent.click(within(editor).getByRole('button', { name: 'Try again' }));
    await waitFor(async () => expect(await picture()).toBe('/api/files/fixed-1'));
    expect(router.state.location.search).toBe('?result=fixed-1');
    expect(api.prompts).toEqual([]);
  });

  test('does not pull back a user who left while the next fix was being sent', async () => {
    const { router } = open(withImage({ fixed: [fixed()] }), '/magic/image-1?result=fixed-1');
    let accept = () => {};
    const held = new Promise<void>((resolve) => {
      accept = resolve;
    });
    server.use(http.post('*/api/magic-images/fix/:id', () => held, { once: true }));
    await waitFor(async () => expect(await picture()).toBe('/api/files/fixed-1'));
    await draw();
    fireEvent.change(await field(), { target: { value: 'remove it' } });
    await start();
    await router.navigate('/terms');
    await screen.findByRole('heading', { name: 'Terms of Service' });
    accept();
    await waitFor(() => expect(useMaskStore.getState().drafts['fixed-1']?.run).toBeDefined());
    expect(router.state.location.pathname).toBe('/terms');
    expect(router.state.navigation.state).toBe('idle');
  });

  test('an image that was made from a fix leads back to it', async () => {
    const madeFrom = { resultId: 'fixed-1', imageId: 'image-1', tool: 'magic-fix' as const };
    const images = [anImage(), anImage({ id: 'image-2', madeFrom })];
    open(withImage({ images, fixed: [fixed()] }), '/magic/image-2');
    expect(await screen.findByRole('link', { name: 'a result of Magic Fix' })).toHaveAttribute(
      'href',
      '/magic/image-1',
    );
    const undo = await screen.findByRole('button', { name: 'Undo' });
    await waitFor(() => expect(undo).toBeEnabled());
    await userEvent.click(undo);
    await waitFor(async () => expect(await picture()).toBe('/api/files/image-1'));
    await press('Redo');
    await waitFor(async () => expect(await picture()).toBe('/api/files/fixed-1'));
  });

  test('an older result can be taken up again', async () => {
    const api = withImage({ fixed: [fixed(), aResult({ imageId: 'fixed-2', jobId: 'job-8' })] });
    open(api);
    await press('Result 2');
    await press('Use in Magic Fix');
    await waitFor(async () => expect(await picture()).toBe('/api/files/fixed-2'));
    expect(screen.queryByRole('button', { name: 'Use in Magic Fix' })).toBeNull();
    expect(countOf(api, 'POST /api/images/from-result')).toBe(0);
  });

  test('a refused run of the next fix keeps its mask, and says why', async () => {
    const api = withImage({ fixed: [fixed()] });
    api.user.credits = 7;
    open(api, '/magic/image-1?result=fixed-1');
    await waitFor(async () => expect(await picture()).toBe('/api/files/fixed-1'));
    await draw();
    fireEvent.change(await field(), { target: { value: 'remove it' } });
    await start();
    expect(await screen.findByRole('alert')).toHaveTextContent('Not enough credits');
    expect((await mask()).textContent).toBe('paint');
    expect(await picture()).toBe('/api/files/fixed-1');
  });
});

describe('using a result in another tool', () => {
  const withResult = (width = 1200, height = 800) =>
    withImage({ upscaled: [aResult({ imageId: 'large', factor: 2, width, height })] });
  const steps = async () =>
    within(await screen.findByRole('region', { name: 'Edit this result' })).getAllByRole('button');

  test('makes one image of it, once, and opens the tool', async () => {
    const api = withResult();
    const { router } = open(api, '/upscale/image-1');
    const button = await screen.findByRole('button', { name: 'Use in Remove Background' });
    await userEvent.dblClick(button);
    await waitFor(() => expect(router.state.location.pathname).toMatch(/^\/remove-background\/image-/));
    expect(countOf(api, 'POST /api/images/from-result')).toBe(1);
    expect(await screen.findByRole('link', { name: 'a result of Upscale' })).toHaveAttribute(
      'href',
      '/upscale/image-1',
    );
  });

  test('says why it is not possible', async () => {
    open(withResult(2400, 1600), '/upscale/image-1');
    const button = await screen.findByRole('button', { name: 'Use in Upscale' });
    expect(button).toBeDisabled();
    expect(button).toHaveAccessibleDescription(
      'Upscale takes images up to 1440 × 1440 px. This result is 2400 × 1600 px.',
    );
    expect(screen.getByRole('button', { name: 'Use in Magic Fix' })).toBeEnabled();
  });

  test('a cutout has no background left to remove', async () => {
    open(withImage({ results: [aResult()] }), '/remove-background/image-1');
    expect((await steps()).map(({ textContent }) => textContent)).toEqual([
      'Use in Magic Fix',
      'Use in Upscale',
    ]);
  });

  test('says what went wrong, and can be tried again', async () => {
    const { router } = open(withResult(), '/upscale/image-1');
    const detail = 'You have used all of your storage. Delete some images first.';
    server.use(
      http.post('*/api/images/from-result/:id', () => HttpResponse.json({ detail }, { status: 507 }), {
        once: true,
      }),
    );
    await press('Use in Magic Fix');
    expect(await screen.findByText(detail)).toBeVisible();
    expect(router.state.location.pathname).toBe('/upscale/image-1');
    await press('Use in Magic Fix');
    await waitFor(() => expect(router.state.location.pathname).toMatch(/^\/magic\/image-/));
  });
});
