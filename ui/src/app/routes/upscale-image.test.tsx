import { screen, waitFor, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { HttpResponse, http } from 'msw';
import { describe, expect, test } from 'vitest';
import type { Job } from '@/lib/api-types';
import { aConfig, aJob, aModel, anImage, aResult } from '@/testing/builders';
import { MockApi } from '@/testing/mock-api';
import { renderApp } from '@/testing/render-app';
import { server } from '@/testing/server';

const open = (api: MockApi) => renderApp('/upscale/image-1', { api, signedIn: true });

function withImage(change: Partial<MockApi> = {}) {
  return Object.assign(new MockApi(), { images: [anImage()], ...change });
}

function withoutUpscale() {
  const config = aConfig();
  config.tools = config.tools.map((offer) =>
    offer.tool === 'upscale'
      ? {
          ...offer,
          available: false,
          freeAvailable: false,
          models: { paid: null, free: null, allPaid: [], allFree: [] },
        }
      : offer,
  );
  return config;
}

const action = (name: 'Free Upscale' | 'Upscale 2X' | 'Upscale 4X') => screen.findByRole('button', { name });
const noteOf = (button: HTMLElement) => button.closest('li');

async function readyAction(name: Parameters<typeof action>[0]) {
  const button = await action(name);
  await waitFor(() => expect(button).toBeEnabled());
  return button;
}

/** Answers every run with this job, which never advances. */
function holdRunsAt(job: Job) {
  server.use(http.post('*/api/upscale/*', () => HttpResponse.json(job, { status: 202 })));
}

describe('the three actions', () => {
  test('each shows its price', async () => {
    open(withImage({ images: [anImage({ x: 500, y: 400 })] }));
    expect(noteOf(await action('Upscale 2X'))).toHaveTextContent(/3 credits$/);
    expect(noteOf(await action('Upscale 4X'))).toHaveTextContent(/6 credits$/);
    expect(noteOf(await action('Free Upscale'))).toHaveTextContent(/Free, once per image · 2X$/);
  });

  test('each shows how long it takes on this image', async () => {
    const config = aConfig();
    for (const offer of config.tools) {
      offer.times = [{ tier: 'paid', model: 'fine', seconds: 9, secondsPerMegapixel: 200 }];
    }
    open(withImage({ config, images: [anImage({ x: 500, y: 400 })] }));
    expect(noteOf(await action('Upscale 2X'))).toHaveTextContent('3 credits · about 40 s');
  });

  test('a paid one that is no better than the free one says so and steps back', async () => {
    open(withImage());
    const paid = await action('Upscale 2X');
    expect(noteOf(paid)).toHaveTextContent('3 credits · same result as the free run');
    expect(noteOf(await action('Upscale 4X'))).toHaveTextContent(/6 credits$/);
    // The colors of the buttons tell which one to press.
    expect(paid).not.toHaveClass('bg-accent');
    expect(await action('Upscale 4X')).not.toHaveClass('bg-accent');
    expect(await action('Free Upscale')).toHaveClass('bg-accent');
  });

  test('none stands out beside a result that can be downloaded', async () => {
    open(withImage({ upscaled: [aResult({ factor: 2 })] }));
    expect(await screen.findByRole('button', { name: 'Download' })).toHaveClass('bg-accent');
    for (const name of ['Upscale 2X', 'Upscale 4X', 'Free Upscale'] as const) {
      expect(await action(name)).not.toHaveClass('bg-accent');
    }
  });

  test('a run that would repeat a result asks first', async () => {
    const same = aModel('compact').sha256;
    const upscaled = [aResult({ factor: 2, tier: 'free', credits: 0, modelSha256: same })];
    const api = withImage({ upscaled });
    open(api);
    await screen.findByRole('img', { name: 'Result 1' });
    const paidRuns = () => api.calls.filter((call) => call.includes('upscale-ai'));
    await userEvent.click(await readyAction('Upscale 2X'));
    expect(await screen.findByRole('alertdialog')).toHaveTextContent('You already have this result');
    await userEvent.click(screen.getByRole('button', { name: 'Cancel' }));
    expect(paidRuns()).toEqual([]);
    await userEvent.click(await readyAction('Upscale 2X'));
    await userEvent.click(await screen.findByRole('button', { name: 'Run again' }));
    await waitFor(() => expect(paidRuns()).toHaveLength(1));
    // Another factor is another result.
    await userEvent.click(await readyAction('Upscale 4X'));
    await waitFor(() => expect(paidRuns()).toHaveLength(2));
  });

  test('an answer to stay returns the focus to the button that asked', async () => {
    const same = aModel('compact').sha256;
    open(withImage({ upscaled: [aResult({ factor: 4, modelSha256: same })] }));
    await screen.findByRole('img', { name: 'Result 1' });
    await userEvent.click(await readyAction('Upscale 4X'));
    await userEvent.click(await screen.findByRole('button', { name: 'Cancel' }));
    expect(await action('Upscale 4X')).toHaveFocus();
  });

  test.each([
    ['Upscale 2X', '/api/upscale/upscale-ai-2', '2X', 17],
    ['Upscale 4X', '/api/upscale/upscale-ai-4', '4X', 14],
    ['Free Upscale', '/api/upscale/upscale-free', '2X', 20],
  ] as const)('%s appends a new result with its factor', async (name, path, factor, credits) => {
    const api = withImage({ upscaled: [aResult({ imageId: 'old', factor: 2 })] });
    open(api);
    await userEvent.click(await readyAction(name));

    const added = await screen.findByRole('img', { name: 'Result 2' });
    expect(added.closest('li')).toHaveTextContent(`${factor}NEW`);
    expect(screen.getByRole('img', { name: 'Result 1' }).closest('li')).not.toHaveTextContent('NEW');
    expect(api.calls).toContain(`POST ${path}?imageId=image-1`);
    expect(await screen.findByRole('link', { name: `credits ${credits}` })).toBeVisible();
    expect(api.results).toEqual([]);
  });

  test('shows the size of a result', async () => {
    open(withImage());
    await userEvent.click(await readyAction('Upscale 4X'));
    expect(await screen.findByText(/^4800 × 3200 px/)).toBeVisible();
    expect(screen.getByRole('img', { name: 'Upscaled result' })).toBeVisible();
  });

  test('uses a new key for another action', async () => {
    const api = withImage();
    open(api);
    server.use(http.post('*/api/upscale/upscale-ai-2', () => HttpResponse.error(), { once: true }));
    await userEvent.click(await readyAction('Upscale 2X'));
    expect(await screen.findByText('The connection was lost. Please try again.')).toBeVisible();
    await userEvent.click(await readyAction('Upscale 4X'));
    await screen.findByRole('img', { name: 'Result 1' });
    await userEvent.click(await readyAction('Upscale 2X'));
    await screen.findByRole('img', { name: 'Result 2' });
    expect(api.idempotencyKeys).toHaveLength(2);
    expect(new Set(api.idempotencyKeys).size).toBe(2);
  });

  test.each([
    ['a lost response', () => HttpResponse.error()],
    ['an answer of 503', () => new HttpResponse(null, { status: 503 })],
  ])('retries with the same key after %s', async (_, answer) => {
    const api = withImage();
    open(api);
    const lost: (string | null)[] = [];
    server.use(
      http.post(
        '*/api/upscale/upscale-ai-4',
        ({ request }) => {
          lost.push(request.headers.get('Idempotency-Key'));
          return answer();
        },
        { once: true },
      ),
    );
    await userEvent.click(await readyAction('Upscale 4X'));
    expect(await screen.findByText('Failed to upscale')).toBeVisible();
    await userEvent.click(await readyAction('Upscale 4X'));
    await screen.findByRole('img', { name: 'Result 1' });
    expect(api.idempotencyKeys).toEqual(lost);
  });
});

describe('refusals', () => {
  test.each([
    { x: 1440, y: 1440 },
    { x: 1440, y: 10 },
  ])('an image of $x × $y can be upscaled', async (size) => {
    open(withImage({ images: [anImage(size)] }));
    await readyAction('Free Upscale');
    await readyAction('Upscale 2X');
    await readyAction('Upscale 4X');
    expect(screen.queryByText(/Image dimensions too big/)).toBeNull();
  });

  test.each([
    { x: 1441, y: 1440 },
    { x: 10, y: 1441 },
  ])('an image of $x × $y disables all three', async (size) => {
    open(withImage({ images: [anImage(size)] }));
    expect(await screen.findByText('Image dimensions too big (Max 1440x1440)')).toBeVisible();
    // By now the jobs have loaded, so nothing else disables the actions.
    await waitFor(() => expect(screen.getByText('No images to show')).toBeVisible());
    expect(await action('Free Upscale')).toBeDisabled();
    expect(await action('Upscale 2X')).toBeDisabled();
    expect(await action('Upscale 4X')).toBeDisabled();
  });

  test('uses the limit of the installation', async () => {
    const config = aConfig();
    config.limits.maxUpscaleDimension = 500;
    open(withImage({ config }));
    expect(await screen.findByText('Image dimensions too big (Max 500x500)')).toBeVisible();
  });

  test('says Not enough credits with a link to the packs, only for the action that is too expensive', async () => {
    const api = withImage();
    api.user.credits = 4;
    open(api);
    await userEvent.click(await readyAction('Upscale 4X'));
    const notice = await screen.findByRole('alert');
    expect(notice).toHaveTextContent('Not enough credits');
    expect(within(notice).getByRole('link')).toHaveAttribute('href', '/pricing');
    await userEvent.click(await readyAction('Upscale 2X'));
    expect(await screen.findByRole('img', { name: 'Result 1' })).toBeVisible();
    expect(screen.queryByText('Not enough credits')).toBeNull();
  });

  test('refuses a second free run that only the API knows about', async () => {
    open(withImage());
    server.use(
      http.post('*/api/upscale/upscale-free', () =>
        HttpResponse.json({ detail: 'Free Exists', status: 409 }, { status: 409 }),
      ),
    );
    const run = await readyAction('Free Upscale');
    await userEvent.click(run);
    expect(await screen.findByText('Free upscale image already created')).toBeVisible();
    expect(run).toHaveAttribute('aria-disabled', 'true');
    expect(await action('Upscale 2X')).toBeEnabled();
  });

  test('refuses a second free run of the same tool', async () => {
    const used = { removeBackground: false, upscale: true };
    open(withImage({ images: [anImage({ freeRuns: used })] }));
    await readyAction('Upscale 2X');
    const run = await action('Free Upscale');
    expect(run).toBeDisabled();
    expect(noteOf(run)).toHaveTextContent('Free run used for this image');
  });

  test('a free background removal does not use up the free upscale', async () => {
    const used = { removeBackground: true, upscale: false };
    open(withImage({ images: [anImage({ freeRuns: used })] }));
    await readyAction('Free Upscale');
  });

  test('shows a failed run with its reason', async () => {
    open(withImage());
    holdRunsAt(
      aJob({
        tool: 'upscale',
        state: 'failed',
        failure: { code: 'image_unreadable', detail: 'The file is damaged and cannot be read.' },
      }),
    );
    await userEvent.click(await readyAction('Upscale 2X'));
    expect(
      await screen.findByText('The file is damaged and cannot be read.', { selector: 'main *' }),
    ).toBeVisible();
    // The page may show another part of itself.
    expect(
      await screen.findByText('The file is damaged and cannot be read.', { selector: '.Toastify *' }),
    ).toBeVisible();
    expect(screen.queryByText('Failed to upscale')).toBeNull();
  });
});

describe('a run in progress', () => {
  const running = (change: Pick<Job, 'progress' | 'etaSeconds'>) =>
    aJob({ tool: 'upscale', factor: 4, cost: 6, state: 'running', position: null, ...change });

  test('shows the stage, the percentage and the time left', async () => {
    open(withImage());
    holdRunsAt(running({ progress: { stage: 'infer', fraction: 0.354 }, etaSeconds: 118 }));
    await userEvent.click(await readyAction('Upscale 4X'));
    expect(await screen.findByText('Working on your image')).toBeVisible();
    expect(screen.getByRole('progressbar')).toHaveAttribute('aria-valuenow', '35');
    expect(screen.getByText('35%')).toBeVisible();
    expect(screen.getByText('About 2 min left')).toBeVisible();
    expect(await action('Upscale 2X')).toBeDisabled();
  });

  test('shows the tile count, also as the value text, but does not announce it', async () => {
    open(withImage());
    const count = { unit: 'tiles' as const, done: 12, total: 48 };
    holdRunsAt(running({ progress: { stage: 'infer', fraction: 0.25, count }, etaSeconds: 118 }));
    await userEvent.click(await readyAction('Upscale 4X'));
    expect(await screen.findByText('Tile 12 of 48')).toBeVisible();
    expect(screen.getByRole('progressbar')).toHaveAttribute('aria-valuetext', '25%, Tile 12 of 48');
    const said = screen.getAllByRole('status').map(({ textContent }) => textContent);
    expect(said).toContain('Working on your image');
    expect(said.join()).not.toContain('Tile');
  });

  test('shows no tile count for a single tile', async () => {
    open(withImage());
    const count = { unit: 'tiles' as const, done: 0, total: 1 };
    holdRunsAt(running({ progress: { stage: 'infer', fraction: 0.25, count }, etaSeconds: 118 }));
    await userEvent.click(await readyAction('Upscale 4X'));
    expect(await screen.findByText('Working on your image')).toBeVisible();
    expect(screen.queryByText(/Tile/)).toBeNull();
    expect(screen.getByRole('progressbar')).not.toHaveAttribute('aria-valuetext');
  });

  test('says that it is joining the tiles', async () => {
    open(withImage());
    holdRunsAt(running({ progress: { stage: 'postprocess', fraction: 0.9 }, etaSeconds: 20 }));
    await userEvent.click(await readyAction('Upscale 4X'));
    expect(await screen.findByText('Joining the tiles')).toBeVisible();
    expect(screen.getByText('About 20 s left')).toBeVisible();
  });

  test.each([
    { stage: 'preprocess' as const, fraction: 0.12 },
    { stage: 'infer' as const, fraction: 0.12, count: { unit: 'tiles' as const, done: 0, total: 48 } },
  ])('shows no estimate before the first tile is done: $stage', async (progress) => {
    open(withImage());
    holdRunsAt(running({ progress, etaSeconds: 1 }));
    await userEvent.click(await readyAction('Upscale 4X'));
    expect(await screen.findByText('The larger the image, the longer it takes')).toBeVisible();
    expect(screen.queryByText(/left$/)).toBeNull();
  });

  test('is shown in the document title', async () => {
    open(withImage());
    await waitFor(() => expect(document.title).toBe('Upscale · Retouch'));
    holdRunsAt(running({ progress: { stage: 'infer', fraction: 0.526 }, etaSeconds: 118 }));
    await userEvent.click(await readyAction('Upscale 4X'));
    await waitFor(() => expect(document.title).toBe('53% · Upscale · Retouch'));
  });

  test('shows no estimate if the API has none', async () => {
    open(withImage());
    holdRunsAt(running({ progress: { stage: 'infer', fraction: 0.1 }, etaSeconds: null }));
    await userEvent.click(await readyAction('Upscale 4X'));
    expect(await screen.findByText('The larger the image, the longer it takes')).toBeVisible();
  });

  test('is followed after a reload', async () => {
    const api = withImage();
    api.runJob({ tool: 'upscale', factor: 2, cost: 3, imageId: 'image-1' });
    open(api);
    expect(await screen.findByRole('img', { name: 'Result 1' })).toBeVisible();
    expect(screen.getByRole('img', { name: 'Result 1' }).closest('li')).toHaveTextContent('2X');
  });

  test('is not confused with a run of another tool', async () => {
    const api = withImage();
    api.startJob({ tool: 'remove-background', imageId: 'image-1' });
    open(api);
    await readyAction('Upscale 2X');
    expect(screen.queryByRole('progressbar')).toBeNull();
  });

  test('can be canceled', async () => {
    open(withImage({ stepMs: 60 }));
    const run = await readyAction('Upscale 4X');
    await userEvent.click(run);
    await userEvent.click(await screen.findByRole('button', { name: 'Cancel' }));
    await waitFor(() => expect(screen.queryByRole('progressbar')).toBeNull());
    expect(run).toBeEnabled();
    expect(document.title).toBe('Upscale · Retouch');
    expect(screen.getByText('No images to show')).toBeVisible();
    expect(screen.getByRole('link', { name: 'credits 20' })).toBeVisible();
  });
});

describe('by keyboard', () => {
  test('a run starts once, keeps the focus, and announces its result', async () => {
    const api = withImage({ stepMs: 40 });
    open(api);
    const run = await readyAction('Upscale 4X');
    run.focus();
    await userEvent.keyboard('{Enter}');
    await screen.findByRole('button', { name: 'Cancel' });
    await userEvent.keyboard('{Enter}');
    expect(run).toHaveFocus();
    expect(run).toHaveAttribute('aria-disabled', 'true');
    const announcement = await screen.findByText('The result is ready');
    expect(announcement).toHaveAttribute('aria-live', 'polite');
    expect(run).toHaveFocus();
    expect(run).not.toHaveAttribute('aria-disabled');
    expect(api.jobs).toHaveLength(1);
  });

  test('a canceled run moves the focus to the results and is announced', async () => {
    const api = withImage({ stepMs: 200 });
    open(api);
    await userEvent.click(await readyAction('Upscale 4X'));
    (await screen.findByRole('button', { name: 'Cancel' })).focus();
    await userEvent.keyboard('{Enter}');
    expect(await screen.findByText('The run was canceled')).toBeInTheDocument();
    await waitFor(() => expect(screen.getByRole('region', { name: 'Results' })).toHaveFocus());
  });

  test('a failed run is an alert', async () => {
    open(withImage());
    holdRunsAt(
      aJob({ tool: 'upscale', state: 'failed', failure: { code: 'out_of_memory', detail: 'No memory.' } }),
    );
    await userEvent.click(await readyAction('Upscale 2X'));
    const alerts = () => screen.getAllByRole('alert').map(({ textContent }) => textContent);
    await waitFor(() =>
      expect(alerts()).toEqual(expect.arrayContaining(['No memory.', 'Failed to upscale'])),
    );
  });
});

describe('the results', () => {
  const two = () => [aResult({ imageId: 'a', factor: 2 }), aResult({ imageId: 'b', factor: 4 })];

  test('show their factors', async () => {
    open(withImage({ upscaled: two() }));
    const strip = within(await screen.findByRole('list', { name: 'All results' }));
    expect(strip.getByRole('img', { name: 'Result 1' }).closest('li')).toHaveTextContent('2X');
    expect(strip.getByRole('img', { name: 'Result 2' }).closest('li')).toHaveTextContent('4X');
    const shown = () => screen.getByRole('img', { name: 'Upscaled result' }).closest('figure');
    expect(shown()).toHaveTextContent(/^2X/);
    await userEvent.click(strip.getByRole('button', { name: 'Result 2' }));
    expect(shown()).toHaveTextContent(/^4X/);
  });

  test('keep their aspect ratio in the strip, with no checkerboard beside them', async () => {
    open(withImage({ upscaled: two() }));
    const picture = await screen.findByRole('img', { name: 'Result 1' });
    expect(picture).toHaveClass('checkerboard', 'w-full');
    expect(picture.style.aspectRatio).toBe('1200 / 800');
    expect(picture.closest('button')).not.toHaveClass('checkerboard');
  });

  test('can be compared with the original', async () => {
    open(withImage({ upscaled: two() }));
    await userEvent.click(await screen.findByRole('button', { name: 'Compare' }));
    expect(await screen.findByRole('slider', { name: 'Compare the original with the result' })).toBeVisible();
  });

  test('can be downloaded in three formats', async () => {
    open(withImage({ upscaled: two() }));
    const formats = within(await screen.findByRole('combobox', { name: 'Format' })).getAllByRole('option');
    expect(formats.map(({ textContent }) => textContent)).toEqual(['PNG', 'JPG', 'WebP']);
    expect(screen.getByRole('button', { name: 'Download' })).toBeEnabled();
  });

  test('are deleted after a confirmation, and the first remaining one is selected', async () => {
    const api = withImage({ upscaled: two() });
    open(api);
    await userEvent.click(await screen.findByRole('button', { name: 'Result 2' }));
    await userEvent.click(screen.getByRole('button', { name: 'DELETE' }));
    await userEvent.click(
      within(await screen.findByRole('alertdialog')).getByRole('button', { name: 'Delete' }),
    );
    await waitFor(() => expect(screen.queryByRole('button', { name: 'Result 2' })).toBeNull());
    expect(screen.getByRole('button', { name: 'Result 1' })).toHaveAttribute('aria-pressed', 'true');
    expect(api.calls).toContain('DELETE /api/upscale/b');
  });

  test('stay if they cannot be deleted', async () => {
    open(withImage({ upscaled: two() }));
    server.use(http.delete('*/api/upscale/:id', () => new HttpResponse(null, { status: 500 })));
    await userEvent.click(await screen.findByRole('button', { name: 'DELETE' }));
    await userEvent.click(
      within(await screen.findByRole('alertdialog')).getByRole('button', { name: 'Delete' }),
    );
    expect(await screen.findByText('Failed to delete image')).toBeVisible();
    expect(screen.getAllByRole('img', { name: /^Result \d/ })).toHaveLength(2);
  });
});

describe('loading failures', () => {
  test('says Failed to load upscaled images', async () => {
    open(withImage());
    server.use(http.get('*/api/upscale/:id', () => new HttpResponse(null, { status: 500 })));
    expect((await screen.findAllByText('Failed to load upscaled images'))[0]).toBeVisible();
  });

  test('says Failed to find your image and links back to the image picker', async () => {
    renderApp('/upscale/nothing', { signedIn: true });
    expect(await screen.findByRole('heading', { name: 'Failed to find your image' })).toBeVisible();
    expect(screen.getByRole('link', { name: 'Choose another image' })).toHaveAttribute('href', '/upscale');
  });
});

describe('a server without the tool', () => {
  test('says so, and calls no API for the image', async () => {
    const api = withImage({ config: withoutUpscale() });
    open(api);
    expect(
      await screen.findByRole('heading', { name: 'Upscale is not installed on this server yet' }),
    ).toBeVisible();
    expect(screen.getByRole('link', { name: 'Remove Background instead' })).toHaveAttribute(
      'href',
      '/remove-background',
    );
    expect(api.calls.filter((call) => call.includes('image-1'))).toEqual([]);
  });

  test('links to a tool with only free runs', async () => {
    const config = withoutUpscale();
    for (const offer of config.tools) offer.available = false;
    open(withImage({ config }));
    expect(await screen.findByRole('link', { name: 'Remove Background instead' })).toBeVisible();
  });

  test('disables only the kind of run it lacks', async () => {
    const config = withoutUpscale();
    config.tools = config.tools.map((offer) =>
      offer.tool === 'upscale' ? { ...offer, freeAvailable: true } : offer,
    );
    open(withImage({ config }));
    await readyAction('Free Upscale');
    expect(await action('Upscale 2X')).toBeDisabled();
    expect(noteOf(await action('Upscale 4X'))).toHaveTextContent('Not installed on this server');
  });
});
