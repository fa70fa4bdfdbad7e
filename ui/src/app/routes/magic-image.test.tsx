import { fireEvent, screen, waitFor, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { HttpResponse, http } from 'msw';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import type { Shape } from '@/features/mask/marks';
import { useMaskStore } from '@/features/mask/mask-store';
import { aConfig, anImage, aResult } from '@/testing/builders';
import { MockApi } from '@/testing/mock-api';
import { renderApp } from '@/testing/render-app';
import { server } from '@/testing/server';

// jsdom has no canvas: the mock lists the shapes it would draw.
vi.mock('@/features/mask/mask-layer', () => ({
  default: ({ shapes }: { shapes: Shape[] }) => (
    <p data-testid="mask">{shapes.map(({ kind }) => kind).join(' ')}</p>
  ),
}));

const open = (api: MockApi) => renderApp('/magic/image-1', { api, signedIn: true });
const withImage = (change: Partial<MockApi> = {}) =>
  Object.assign(new MockApi(), { images: [anImage()], ...change });

const surface = () => screen.findByRole('application', { name: 'Image to draw on' });
const mask = () => screen.findByTestId('mask');
const field = () => screen.findByRole('textbox', { name: 'Prompt' });
const runButton = () => screen.findByRole('button', { name: 'Magic Fix' });

async function enabledRunButton() {
  const button = await runButton();
  await waitFor(() => expect(button).toBeEnabled());
  return button;
}

async function draw(x = 100) {
  const image = await surface();
  await mask();
  fireEvent.pointerDown(image, { pointerId: 1, clientX: x, clientY: 100, button: 0, buttons: 1 });
  fireEvent.pointerMove(image, { pointerId: 1, clientX: x + 50, clientY: 120, buttons: 1 });
  fireEvent.pointerUp(image, { pointerId: 1, clientX: x + 50, clientY: 120 });
}

async function run(prompt = 'remove the object') {
  await draw();
  await userEvent.type(await field(), prompt);
  await userEvent.click(await enabledRunButton());
}

beforeEach(() => {
  useMaskStore.setState({ brush: 'paint', brushSize: 20, drafts: {} });
  // A frame of 600 × 400 px: the image of 1200 × 800 px is shown at half its size.
  vi.spyOn(HTMLElement.prototype, 'clientWidth', 'get').mockReturnValue(600);
  vi.spyOn(HTMLElement.prototype, 'clientHeight', 'get').mockReturnValue(400);
  vi.stubGlobal(
    'ResizeObserver',
    class {
      constructor(private readonly onResize: () => void) {}
      observe() {
        this.onResize();
      }
      disconnect() {}
    },
  );
});

describe('a run', () => {
  test('sends mask and prompt, and shows the result with the prompt in quotes', async () => {
    const api = withImage({ fixed: [aResult({ imageId: 'old', prompt: 'restore' })] });
    open(api);
    await run();
    const added = await screen.findByRole('img', { name: 'Result 2' });
    expect(added.closest('li')).toHaveTextContent('NEW');
    expect(screen.getByText('“remove the object”')).toBeVisible();
    expect(screen.getByText('Removed · classical')).toBeVisible();
    expect(screen.queryByText('Demo model')).toBeNull();
    expect(api.calls).toContain('POST /api/magic-images/fix/image-1');
    expect(api.prompts).toEqual(['remove the object']);
    expect(await screen.findByRole('link', { name: 'credits 12' })).toBeVisible();
  });

  test('shows its price', async () => {
    open(withImage());
    await enabledRunButton();
    expect(screen.getByText('8 credits · classical')).toBeVisible();
  });

  test('keeps the strokes; the next stroke starts a new mask', async () => {
    open(withImage());
    await draw();
    await draw(200);
    expect(await mask()).toHaveTextContent('paint paint');
    await userEvent.type(await field(), 'remove this');
    await userEvent.click(await enabledRunButton());
    await screen.findByRole('img', { name: 'Result 1' });
    expect(await mask()).toHaveTextContent('paint paint');
    await draw(300);
    expect((await mask()).textContent).toBe('paint');
    await userEvent.click(screen.getByRole('button', { name: 'Undo' }));
    expect(await mask()).toHaveTextContent('paint paint');
  });

  test('retries after a lost response with the same key, but uses a new key for another prompt', async () => {
    const api = withImage();
    open(api);
    const lost: (string | null)[] = [];
    const lose = () =>
      server.use(
        http.post(
          '*/api/magic-images/fix/:id',
          ({ request }) => {
            lost.push(request.headers.get('Idempotency-Key'));
            return HttpResponse.error();
          },
          { once: true },
        ),
      );
    lose();
    await run();
    expect(await screen.findByText('Failed to magic fix image, please try again')).toBeVisible();
    expect(screen.getByText('The connection was lost. Please try again.')).toBeVisible();
    lose();
    await userEvent.click(await enabledRunButton());
    await waitFor(() => expect(lost).toHaveLength(2));
    expect(lost[1]).toBe(lost[0]);
    await userEvent.type(await field(), ' now');
    await userEvent.click(await enabledRunButton());
    await screen.findByRole('img', { name: 'Result 1' });
    expect(api.idempotencyKeys[0]).not.toBe(lost[0]);
  });

  test('labels the result of a demo model', async () => {
    open(
      withImage({ fixed: [aResult({ prompt: 'a red circle', mode: 'add', model: 'shapes', demo: true })] }),
    );
    expect(await screen.findByText('Demo model')).toBeVisible();
    expect(screen.getByText('Added · shapes')).toBeVisible();
  });

  test('shows the result while the button is held', async () => {
    open(withImage({ fixed: [aResult()] }));
    const hold = await screen.findByRole('button', { name: 'Hold to see the result' });
    await mask();
    fireEvent.pointerDown(hold);
    expect((await surface()).querySelector('img')).toHaveAttribute('src', '/api/files/result-1');
    expect(screen.queryByTestId('mask')).toBeNull();
    fireEvent.pointerUp(hold);
    expect((await surface()).querySelector('img')).toHaveAttribute('src', '/api/files/image-1');
  });
});

describe('refusals', () => {
  test('a run without prompt or stroke, without calling the API', async () => {
    const api = withImage();
    open(api);
    await userEvent.click(await enabledRunButton());
    expect(await field()).toHaveAccessibleDescription(/Prompt is required/);
    expect(await field()).toHaveFocus();
    // At the field, and as a toast.
    await waitFor(() => expect(screen.getAllByText('Prompt is required')).toHaveLength(2));
    await waitFor(() =>
      expect(screen.getAllByText('You have to draw to select area you want to fix 1')).toHaveLength(2),
    );
    expect(api.prompts).toEqual([]);
  });

  test('a message disappears when its field changes', async () => {
    open(withImage());
    await userEvent.click(await enabledRunButton());
    const editor = (await surface()).closest('section') as HTMLElement;
    await draw();
    expect(within(editor).queryByText(/^You have to draw/)).toBeNull();
    expect(within(editor).getByText('Prompt is required')).toBeVisible();
    await userEvent.type(await field(), 'a');
    expect(within(editor).queryByText('Prompt is required')).toBeNull();
  });

  test('a prompt of more than 500 letters', async () => {
    const api = withImage();
    open(api);
    await draw();
    fireEvent.change(await field(), { target: { value: 'a'.repeat(501) } });
    expect(screen.getByText('501 of 500')).toBeVisible();
    await userEvent.click(await enabledRunButton());
    expect(await field()).toHaveAccessibleDescription(
      /Prompt is too long, maximum of 500 letters is allowed/,
    );
    expect(api.prompts).toEqual([]);
  });

  test('a mask that was completely erased', async () => {
    const api = withImage();
    open(api);
    await draw();
    await userEvent.click(screen.getByRole('radio', { name: 'Eraser' }));
    await userEvent.click(screen.getByRole('radio', { name: '30 px' }));
    await draw();
    await userEvent.type(await field(), 'remove');
    await userEvent.click(await enabledRunButton());
    expect(
      (await screen.findAllByText('You have to draw to select area you want to fix 1'))[0],
    ).toBeVisible();
    expect(api.prompts).toEqual([]);
  });

  test('a prompt that no model can follow, explained at the field and not charged', async () => {
    open(withImage());
    await run('a castle in the sky');
    await waitFor(async () => expect(await field()).toHaveAccessibleDescription(/No castles here\./));
    expect(await field()).toBeInvalid();
    expect(await field()).toHaveFocus();
    expect(screen.queryByText('Failed to magic fix image, please try again')).toBeNull();
    expect(screen.getByRole('link', { name: 'credits 20' })).toBeVisible();
    // The strokes stay, and the next one continues the mask.
    await draw(300);
    expect(await mask()).toHaveTextContent('paint paint');
    await userEvent.type(await field(), '!');
    expect(screen.queryByText('No castles here.')).toBeNull();
  });

  test('right-to-left words: the field switches direction, and quoted words keep their order', async () => {
    open(withImage());
    const detail = 'It does not know “أزل”, “هذا”; try “remove it”.';
    server.use(
      http.post('*/api/magic-images/fix/:id', () =>
        HttpResponse.json({ code: 'prompt_not_possible', detail }, { status: 422 }),
      ),
    );
    await run('أزل هذا');
    expect(await field()).toHaveAttribute('dir', 'auto');
    const problem = await screen.findByRole('alert');
    expect(problem).toHaveTextContent(detail);
    expect([...problem.querySelectorAll('bdi')].map(({ textContent }) => textContent)).toEqual([
      '“أزل”',
      '“هذا”',
      '“remove it”',
    ]);
  });

  test('a mask that the API cannot use, explained at the mask', async () => {
    open(withImage());
    server.use(
      http.post('*/api/magic-images/fix/:id', () =>
        HttpResponse.json({ code: 'mask_invalid', detail: 'The mask is odd.' }, { status: 422 }),
      ),
    );
    await run();
    expect(await screen.findByRole('alert')).toHaveTextContent('The mask is odd.');
    expect(await field()).not.toBeInvalid();
  });

  test('says Not enough credits with a link to the packs', async () => {
    const api = withImage();
    api.user.credits = 7;
    open(api);
    await run();
    const notice = await screen.findByRole('alert');
    expect(notice).toHaveTextContent('Not enough credits');
    expect(within(notice).getByRole('link')).toHaveAttribute('href', '/pricing');
  });

  test('an image above the general limit', async () => {
    const config = aConfig();
    config.limits.maxDimension = 1000;
    open(withImage({ config }));
    expect(await screen.findByText('Image dimensions too big (Max 1000x1000)')).toBeVisible();
    await screen.findByText('No images to show');
    expect(await runButton()).toBeDisabled();
  });
});

describe('the editor', () => {
  test('stores strokes in image pixels, with undo, redo and clear', async () => {
    open(withImage());
    await draw();
    expect(useMaskStore.getState().drafts['image-1']?.done).toEqual([
      { kind: 'paint', size: 40, points: [200, 200, 300, 240] },
    ]);
    const button = (name: string) => screen.getByRole('button', { name });
    await userEvent.click(button('Undo'));
    expect((await mask()).textContent).toBe('');
    await userEvent.click(button('Redo'));
    expect((await mask()).textContent).toBe('paint');
    await userEvent.click(button('Clear'));
    expect((await mask()).textContent).toBe('');
    expect(button('Export mask')).toBeDisabled();
    await userEvent.click(button('Undo'));
    expect((await mask()).textContent).toBe('paint');
  });

  test('has shortcuts, except in text fields', async () => {
    open(withImage());
    await draw();
    await userEvent.keyboard('e]');
    expect(screen.getByRole('radio', { name: 'Eraser' })).toBeChecked();
    expect(screen.getByRole('radio', { name: '30 px' })).toBeChecked();
    await userEvent.keyboard('b[[[[[[');
    expect(screen.getByRole('radio', { name: 'Brush' })).toBeChecked();
    expect(screen.getByRole('radio', { name: '10 px' })).toBeChecked();
    await userEvent.keyboard('{Control>}z{/Control}');
    expect((await mask()).textContent).toBe('');
    await userEvent.keyboard('{Control>}{Shift>}z{/Shift}{/Control}');
    expect((await mask()).textContent).toBe('paint');
    await userEvent.type(await field(), 'be{Control>}z{/Control}');
    expect(screen.getByRole('radio', { name: 'Brush' })).toBeChecked();
    expect((await mask()).textContent).toBe('paint');
  });

  test('can be used with the keyboard', async () => {
    open(withImage());
    (await surface()).focus();
    await userEvent.keyboard('{Enter}{ArrowRight}{ArrowDown}{Enter}');
    expect(useMaskStore.getState().drafts['image-1']?.done).toEqual([
      { kind: 'paint', size: 40, points: [600, 400, 624, 400, 624, 424] },
    ]);
  });

  test('draws finer when zoomed in', async () => {
    open(withImage());
    await mask();
    await userEvent.click(screen.getByRole('button', { name: 'Zoom in' }));
    expect(screen.getByText('75%')).toBeVisible();
    await draw();
    expect(useMaskStore.getState().drafts['image-1']?.done[0]).toMatchObject({ size: 26.67 });
    await userEvent.click(screen.getByRole('button', { name: 'Fit' }));
    expect(screen.getByText('50%')).toBeVisible();
  });

  test('restores mask and prompt after a reload', async () => {
    const first = open(withImage());
    await draw();
    await userEvent.type(await field(), 'remove it');
    window.dispatchEvent(new Event('pagehide'));
    first.unmount();
    useMaskStore.setState({ drafts: {} });
    await useMaskStore.persist.rehydrate();
    expect(useMaskStore.getState().drafts['image-1']).toMatchObject({ prompt: 'remove it' });
    open(withImage());
    expect((await mask()).textContent).toBe('paint');
    expect(await field()).toHaveValue('remove it');
  });

  test('suggests prompts and fills them in', async () => {
    open(withImage());
    expect(await screen.findByText('Here you can remove, restore and enhance.')).toBeVisible();
    await userEvent.click(screen.getByRole('button', { name: 'Enhance details' }));
    expect(await field()).toHaveValue('Enhance details');
    expect(await field()).toHaveFocus();
  });
});

describe('failures', () => {
  test('says Failed to load magic fix images', async () => {
    open(withImage());
    server.use(http.get('*/api/magic-images/:id', () => new HttpResponse(null, { status: 500 })));
    expect((await screen.findAllByText('Failed to load magic fix images'))[0]).toBeVisible();
  });

  test('says Failed to find your image and links back to the image picker', async () => {
    renderApp('/magic/nothing', { signedIn: true });
    expect(await screen.findByRole('heading', { name: 'Failed to find your image' })).toBeVisible();
    expect(screen.getByRole('link', { name: 'Choose another image' })).toHaveAttribute('href', '/magic');
  });

  test.each(['/magic', '/magic/image-1'])('%s says when the tool is not installed', async (path) => {
    const config = aConfig();
    config.tools = config.tools.filter(({ tool }) => tool !== 'magic-fix');
    renderApp(path, { api: withImage({ config }), signedIn: true });
    expect(
      await screen.findByRole('heading', { name: 'Magic Fix is not installed on this server yet' }),
    ).toBeVisible();
  });
});
