import { act, fireEvent, screen, waitFor, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { HttpResponse, http } from 'msw';
import { beforeAll, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import type { Shape } from '@/features/mask/marks';
import { useMaskStore } from '@/features/mask/mask-store';
import { keyOf, setCatalogue } from '@/lib/translate';
import { aConfig, anImage, aResult } from '@/testing/builders';
import { stubFrame } from '@/testing/frame';
import { MockApi } from '@/testing/mock-api';
import { renderApp } from '@/testing/render-app';
import { server } from '@/testing/server';

/** The images that a mask was drawn for. */
const drawnFor = vi.hoisted(() => new Set<unknown>());

// jsdom has no canvas: the mock lists the shapes it would draw.
vi.mock('@/features/mask/mask-layer', () => ({
  default: ({ image, shapes, reach }: { image: unknown; shapes: Shape[]; reach: number }) => {
    drawnFor.add(image);
    return (
      <p data-testid="mask" data-reach={reach}>
        {shapes
          .map((shape) => (shape.kind === 'area' && shape.erases ? 'erased area' : shape.kind))
          .join(' ')}
      </p>
    );
  },
}));

// It has no image decoder either: every mask marks three pixels.
vi.mock('@/features/mask/read-mask', () => ({
  readMask: async () => ({ kind: 'area', spans: [0, 0, 3] }),
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

// The first test would compile the page in its own time, which on a busy machine is all it has.
beforeAll(async () => {
  await Promise.all([import('./magic-image'), import('@/features/runs/job-progress')]);
}, 60_000);

beforeEach(() => {
  useMaskStore.setState({ brush: 'paint', brushSize: 20, takesAway: false, drafts: {} });
  stubFrame();
});

describe('a run', () => {
  test('sends mask and prompt, and shows the result with the prompt in quotes', async () => {
    const api = withImage({ fixed: [aResult({ imageId: 'old', prompt: 'restore' })] });
    open(api);
    await run();
    const added = await screen.findByRole('img', { name: 'Result 2' });
    expect(added.closest('li')).toHaveTextContent('NEW');
    expect(screen.getByText('“remove the object”')).toBeVisible();
    expect(screen.getByText('Removed')).toBeVisible();
    expect(screen.queryByText('Demo model')).toBeNull();
    expect(api.calls).toContain('POST /api/magic-images/fix/image-1');
    expect(api.prompts).toEqual(['remove the object']);
    expect(await screen.findByRole('link', { name: 'credits 12' })).toBeVisible();
  });

  test('shows its price', async () => {
    open(withImage());
    await enabledRunButton();
    expect(screen.getByText('8 credits')).toBeVisible();
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
    expect(screen.getByText('Added')).toBeVisible();
  });

  test('shows the result while the button is held', async () => {
    open(withImage({ fixed: [aResult()] }));
    const hold = await screen.findByRole('button', { name: 'Hold to see the result' });
    await mask();
    fireEvent.pointerDown(hold);
    expect((await surface()).querySelector('img')).toHaveAttribute('src', '/api/files/result-1');
    expect(screen.queryByTestId('mask')).toBeNull();
    const later = Date.now() + 1000;
    const clock = vi.spyOn(Date, 'now').mockReturnValue(later);
    fireEvent.pointerUp(hold);
    clock.mockRestore();
    expect((await surface()).querySelector('img')).toHaveAttribute('src', '/api/files/image-1');
  });

  test('a click switches the result on and off', async () => {
    open(withImage({ fixed: [aResult()] }));
    const button = await screen.findByRole('button', { name: 'Hold to see the result' });
    await mask();
    const shown = async () => (await surface()).querySelector('img')?.getAttribute('src');
    await userEvent.click(button);
    expect(await shown()).toBe('/api/files/result-1');
    expect(button).toHaveAttribute('aria-pressed', 'true');
    await userEvent.click(button);
    expect(await shown()).toBe('/api/files/image-1');
    button.focus();
    await userEvent.keyboard('{Enter}');
    expect(await shown()).toBe('/api/files/result-1');
    await userEvent.keyboard(' ');
    expect(await shown()).toBe('/api/files/image-1');
    // Assistive technology clicks without a press.
    fireEvent.click(button);
    expect(await shown()).toBe('/api/files/result-1');
  });
});

describe('drawing over a comparison', () => {
  test.each(['Hold to see the result', 'Slider'])(
    '%s: ends it, so that people see what they draw',
    async (name) => {
      open(withImage({ fixed: [aResult()] }));
      const button = await screen.findByRole('button', { name });
      await mask();
      const isOn = () => button.getAttribute('aria-pressed');
      await userEvent.click(button);
      expect(isOn()).toBe('true');
      const image = await surface();
      fireEvent.pointerDown(image, { pointerId: 1, clientX: 100, clientY: 100, button: 0, buttons: 1 });
      expect(isOn()).toBe('false');
      expect(await mask()).toBeVisible();
      fireEvent.pointerUp(image, { pointerId: 1 });
      await userEvent.click(button);
      image.focus();
      await userEvent.keyboard('{Enter}');
      expect(isOn()).toBe('false');
      expect(await mask()).toHaveTextContent('paint');
    },
  );

  test('keeps it while the picture is moved', async () => {
    open(withImage({ fixed: [aResult()] }));
    const button = await screen.findByRole('button', { name: 'Slider' });
    await userEvent.click(button);
    fireEvent.pointerDown(await surface(), { pointerId: 1, button: 1, buttons: 4 });
    expect(button).toHaveAttribute('aria-pressed', 'true');
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
    // And as a toast: a phone shows the results by now.
    await waitFor(() => expect(screen.getAllByText('The mask is odd.')).toHaveLength(2));
  });

  test('a refusal in the language of the page', async () => {
    open(withImage());
    server.use(
      http.post('*/api/magic-images/fix/:id', () =>
        HttpResponse.json({ code: 'mask_invalid', detail: 'The mask is odd.' }, { status: 422 }),
      ),
    );
    setCatalogue({ [keyOf('code:mask_invalid')]: 'Die Maske ist ungültig.' }, 'de');
    onTestFinished(() => setCatalogue({}, 'en'));
    await run();
    expect(await screen.findByRole('alert')).toHaveTextContent('Die Maske ist ungültig.');
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

describe('click to select', () => {
  const tool = () => userEvent.click(screen.getByRole('radio', { name: 'Select' }));

  async function clickAt(x: number, y: number, change: { altKey?: boolean } = {}) {
    const image = await surface();
    fireEvent.pointerDown(image, { pointerId: 1, clientX: x, clientY: y, button: 0, buttons: 1, ...change });
    fireEvent.pointerUp(image, { pointerId: 1, clientX: x, clientY: y });
  }

  async function ready(change: Partial<MockApi> = {}) {
    const api = withImage(change);
    open(api);
    await surface();
    await mask();
    return api;
  }

  test('adds what is clicked; further clicks correct it, and undo goes back click by click', async () => {
    const api = await ready();
    await tool();
    await clickAt(100, 50);
    await waitFor(async () => expect((await mask()).textContent).toBe('area'));
    expect(api.selections).toEqual([{ positive: [{ x: 200, y: 100 }], negative: [] }]);
    await clickAt(150, 60, { altKey: true });
    await waitFor(() => expect(api.selections).toHaveLength(2));
    expect(api.selections[1]).toEqual({
      positive: [{ x: 200, y: 100 }],
      negative: [{ x: 300, y: 120 }],
    });
    const draft = () => useMaskStore.getState().drafts['image-1'];
    await waitFor(() => expect(draft()?.done).toHaveLength(2));
    expect((await mask()).textContent).toBe('area');
    await userEvent.click(screen.getByRole('button', { name: 'Undo' }));
    expect(draft()?.done).toHaveLength(1);
    expect((await mask()).textContent).toBe('area');
  });

  test('refines with the brush, and the next click starts another selection', async () => {
    const api = await ready();
    await tool();
    await clickAt(100, 50);
    await waitFor(async () => expect((await mask()).textContent).toBe('area'));
    await userEvent.click(screen.getByRole('radio', { name: 'Brush' }));
    await draw();
    await tool();
    await clickAt(300, 200);
    await waitFor(async () => expect((await mask()).textContent).toBe('area paint area'));
    expect(api.selections[1]).toEqual({ positive: [{ x: 600, y: 400 }], negative: [] });
  });

  test('takes away from the brush’s marks, with Alt or by the button', async () => {
    await ready();
    await draw();
    await tool();
    await clickAt(100, 50, { altKey: true });
    await waitFor(async () => expect((await mask()).textContent).toBe('paint erased area'));
    await userEvent.click(screen.getByRole('button', { name: 'Take away' }));
    expect(screen.getByRole('button', { name: 'Take away' })).toHaveAttribute('aria-pressed', 'true');
    await clickAt(100, 50);
    await waitFor(async () => expect((await mask()).textContent).toBe('paint erased area erased area'));
  });

  async function dragBox(change: { altKey?: boolean } = {}) {
    const image = await surface();
    const start = { pointerId: 1, clientX: 500, clientY: 300, button: 0, buttons: 1, ...change };
    fireEvent.pointerDown(image, start);
    fireEvent.pointerMove(image, { pointerId: 1, clientX: 700, clientY: 350, buttons: 1 });
    fireEvent.pointerUp(image, { pointerId: 1, clientX: 700, clientY: 350 });
  }

  test('takes a box away, with Alt or by the button', async () => {
    await ready();
    await draw();
    await tool();
    await dragBox({ altKey: true });
    await waitFor(async () => expect((await mask()).textContent).toBe('paint erased area'));
    await userEvent.click(screen.getByRole('button', { name: 'Take away' }));
    await dragBox();
    await waitFor(async () => expect((await mask()).textContent).toBe('paint erased area erased area'));
  });

  test('selects in a box that is dragged, within the image', async () => {
    const api = await ready();
    await tool();
    await dragBox();
    await waitFor(() => expect(api.selections).toHaveLength(1));
    const box = { x: 1000, y: 600, width: 200, height: 100 };
    expect(api.selections).toEqual([{ positive: [], negative: [], box }]);
  });

  test('selects the subject with one button, whatever the tool', async () => {
    const api = await ready();
    await userEvent.click(screen.getByRole('button', { name: 'Select subject' }));
    await waitFor(async () => expect((await mask()).textContent).toBe('area'));
    expect(api.selections).toEqual([{ positive: [], negative: [], subject: true }]);
  });

  test('can be used with the keyboard', async () => {
    const api = await ready();
    (await surface()).focus();
    await userEvent.keyboard('s{Enter}');
    await waitFor(async () => expect((await mask()).textContent).toBe('area'));
    expect(api.selections).toEqual([{ positive: [{ x: 600, y: 400 }], negative: [] }]);
  });

  test('a click before the answer of the last one contains it, and only the last answer counts', async () => {
    const api = await ready();
    let sent = 0;
    server.use(
      http.post('*/api/images/:id/select', async ({ request }) => {
        api.selections.push(await request.json());
        sent += 1;
        if (sent === 1) await new Promise(() => {});
        return new HttpResponse(new Blob(), { headers: { 'Content-Type': 'image/png' } });
      }),
    );
    await tool();
    await clickAt(100, 50);
    await waitFor(() => expect(api.selections).toHaveLength(1));
    expect(screen.getByRole('status')).toHaveTextContent('Selecting…');
    await clickAt(200, 50);
    await waitFor(async () => expect((await mask()).textContent).toBe('area'));
    expect(api.selections[1]).toEqual({
      positive: [
        { x: 200, y: 100 },
        { x: 400, y: 100 },
      ],
      negative: [],
    });
    expect(useMaskStore.getState().drafts['image-1']?.done).toHaveLength(1);
  });

  test('undo gives up a selection on its way', async () => {
    const api = await ready();
    server.use(
      http.post('*/api/images/:id/select', async () => {
        api.selections.push(null);
        return new Promise<never>(() => {});
      }),
    );
    await draw();
    await tool();
    await clickAt(100, 50);
    await waitFor(() => expect(api.selections).toHaveLength(1));
    await userEvent.click(screen.getByRole('button', { name: 'Undo' }));
    expect(screen.getByRole('status')).toBeEmptyDOMElement();
    expect((await mask()).textContent).toBe('paint');
  });

  test('a run waits for the selection on its way', async () => {
    const api = await ready();
    let answer = () => {};
    const held = new Promise<void>((resolve) => {
      answer = resolve;
    });
    server.use(
      http.post('*/api/images/:id/select', async () => {
        await held;
        return new HttpResponse(new Blob(), { headers: { 'Content-Type': 'image/png' } });
      }),
    );
    await draw();
    await userEvent.type(await field(), 'remove it');
    await tool();
    await clickAt(100, 50);
    const button = await screen.findByRole('button', { name: 'Selecting…' });
    fireEvent.click(button);
    fireEvent.keyDown(await field(), { key: 'Enter', ctrlKey: true });
    answer();
    await userEvent.click(await enabledRunButton());
    await screen.findByRole('img', { name: 'Result 1' });
    expect(api.prompts).toEqual(['remove it']);
    await waitFor(async () => expect((await mask()).textContent).toBe(''));
    expect(useMaskStore.getState().drafts['image-1']?.done).toHaveLength(2);
  });

  test('a run does not wait for a connection that is dead', async () => {
    await ready();
    server.use(http.post('*/api/images/:id/select', () => new Promise<never>(() => {})));
    await tool();
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    fireEvent.click(screen.getByRole('button', { name: 'Select subject' }));
    expect(screen.getByRole('button', { name: 'Selecting…' })).toBeDisabled();
    await act(() => vi.advanceTimersByTimeAsync(30_000));
    vi.useRealTimers();
    expect(await enabledRunButton()).toBeVisible();
    expect(await screen.findByText('Failed to select, please try again')).toBeVisible();
  });

  test('says in words why nothing was selected', async () => {
    await ready();
    const detail = 'Nothing stands out there. Click somewhere else.';
    server.use(
      http.post(
        '*/api/images/:id/select',
        () => HttpResponse.json({ code: 'nothing_found', detail }, { status: 422 }),
        { once: true },
      ),
    );
    await tool();
    await clickAt(100, 50);
    expect(await screen.findByText(detail)).toBeVisible();
    expect((await mask()).textContent).toBe('');
    server.use(http.post('*/api/images/:id/select', () => HttpResponse.error(), { once: true }));
    await clickAt(100, 50);
    expect(await screen.findByText('Failed to select, please try again')).toBeVisible();
    await clickAt(100, 50);
    await waitFor(async () => expect((await mask()).textContent).toBe('area'));
  });

  test('a click beside the image selects nothing', async () => {
    const api = await ready();
    await tool();
    await clickAt(650, 50);
    expect(api.selections).toEqual([]);
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

  test('has Undo while a switch has the focus', async () => {
    open(withImage());
    await draw();
    (await screen.findByRole('switch', { name: 'Exact mask' })).focus();
    await userEvent.keyboard('{Control>}z{/Control}');
    expect((await mask()).textContent).toBe('');
  });

  test('has shortcuts on keyboards with other letters, by the place of the key', async () => {
    open(withImage());
    const target = await surface();
    await draw();
    fireEvent.keyDown(target, { key: 'у', code: 'KeyE' });
    expect(screen.getByRole('radio', { name: 'Eraser' })).toBeChecked();
    fireEvent.keyDown(target, { key: 'я', code: 'KeyZ', ctrlKey: true });
    expect((await mask()).textContent).toBe('');
  });

  test('Space opens the list of shortcuts', async () => {
    open(withImage());
    const summary = await screen.findByText('Keyboard shortcuts');
    summary.focus();
    // Not prevented: the browser opens the list.
    expect(fireEvent.keyDown(summary, { key: ' ', code: 'Space' })).toBe(true);
  });

  test('Invert selects everything else', async () => {
    open(withImage());
    await draw();
    await userEvent.click(screen.getByRole('button', { name: 'Invert' }));
    expect((await mask()).textContent).toBe('area');
    await userEvent.click(screen.getByRole('button', { name: 'Undo' }));
    expect((await mask()).textContent).toBe('paint');
  });

  test('a refusal does not take the focus from somebody who is typing', async () => {
    open(withImage());
    await draw();
    await userEvent.type(await field(), 'a castle');
    const other = document.createElement('input');
    document.body.append(other);
    fireEvent.click(await enabledRunButton());
    other.focus();
    expect(await screen.findByText('No castles here.')).toBeVisible();
    expect(other).toHaveFocus();
    other.remove();
  });

  test('can be used with the keyboard', async () => {
    open(withImage());
    (await surface()).focus();
    await userEvent.keyboard('{Enter}{ArrowRight}{ArrowDown}{Enter}');
    expect(useMaskStore.getState().drafts['image-1']?.done).toEqual([
      { kind: 'paint', size: 40, points: [600, 400, 624, 400, 624, 424] },
    ]);
  });

  test('the brush of the keyboard stays in sight: at the edge, an enlarged picture moves', async () => {
    open(withImage());
    await mask();
    (await surface()).focus();
    const lefts = '{ArrowLeft}'.repeat(40);
    await userEvent.keyboard(`${lefts}{ArrowRight}{Enter}{Enter}`);
    expect(useMaskStore.getState().drafts['image-1']?.done[0]).toMatchObject({ points: [24, 400] });
    await userEvent.keyboard(`++${lefts}{ArrowRight}{Enter}{Enter}`);
    expect(useMaskStore.getState().drafts['image-1']?.done[1]).toMatchObject({ points: [10.67, 400] });
  });

  test('draws nothing more while Enter is held down', async () => {
    open(withImage());
    (await surface()).focus();
    await userEvent.keyboard('{Enter>5}{ArrowRight}{/Enter}{Enter}');
    expect(useMaskStore.getState().drafts['image-1']?.done).toEqual([
      { kind: 'paint', size: 40, points: [600, 400, 624, 400] },
    ]);
  });

  test('stores what was drawn as soon as the page is hidden', async () => {
    open(withImage());
    await draw();
    useMaskStore.setState({ brushSize: 30 });
    fireEvent(document, new Event('visibilitychange'));
    expect(JSON.parse(sessionStorage.getItem('retouch-magic-fix') ?? '')).toMatchObject({
      state: { brushSize: 30, drafts: { 'image-1': { done: [{ kind: 'paint' }] } } },
    });
  });

  test('does not draw the mask again with every letter of the prompt', async () => {
    open(withImage());
    await draw();
    drawnFor.clear();
    await userEvent.type(await field(), 'remove it');
    expect(drawnFor.size).toBe(1);
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

  test('is zoomed by the wheel, also over the slider that compares', async () => {
    open(withImage({ fixed: [aResult()] }));
    await userEvent.click(await screen.findByRole('button', { name: 'Slider' }));
    expect(screen.getByText('50%')).toBeVisible();
    fireEvent.wheel(await surface(), { ctrlKey: true, deltaY: -1_000 });
    expect(screen.getByText('100%')).toBeVisible();
    const slider = screen.getByRole('slider', { name: 'Compare before and after' });
    fireEvent.wheel(slider, { ctrlKey: true, deltaY: -1_000 });
    expect(screen.getByText('200%')).toBeVisible();
  });

  test('shows a smaller copy until it is zoomed in', async () => {
    open(withImage({ images: [anImage({ previewUrl: '/api/files/preview-1' })] }));
    const shown = async () => (await surface()).querySelector('img')?.getAttribute('src');
    await mask();
    expect(await shown()).toBe('/api/files/preview-1');
    await userEvent.click(screen.getByRole('button', { name: 'Zoom in' }));
    expect(await shown()).toBe('/api/files/image-1');
  });

  test('says that the picture is loading or could not be loaded, and tries again', async () => {
    open(withImage());
    const picture = async () => (await surface()).querySelector('img') as HTMLImageElement;
    const loading = () =>
      within(document.getElementById('original')?.closest('section') as HTMLElement).queryByText('Loading');
    await mask();
    expect(loading()).toBeInTheDocument();
    const first = await picture();
    fireEvent.error(first);
    expect(await screen.findByText('This part of the page could not be loaded.')).toBeVisible();
    await userEvent.click(screen.getByRole('button', { name: 'Try again' }));
    expect(await picture()).not.toBe(first);
    expect(loading()).toBeInTheDocument();
    fireEvent.load(await picture());
    expect(loading()).toBeNull();
    expect(screen.queryByText('This part of the page could not be loaded.')).toBeNull();
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

  test('replaces a typed prompt as the browser does, which can undo it', async () => {
    open(withImage());
    await userEvent.type(await field(), 'a prompt that took long to type');
    const prompt = (await field()) as HTMLTextAreaElement;
    // jsdom cannot edit text like a browser.
    const insert = vi.fn((_command: string, _ui?: boolean, text = '') => {
      prompt.setRangeText(text, prompt.selectionStart, prompt.selectionEnd);
      return fireEvent.input(prompt);
    });
    document.execCommand = insert;
    onTestFinished(() => void Reflect.deleteProperty(document, 'execCommand'));
    await userEvent.click(screen.getByRole('button', { name: 'Enhance details' }));
    expect(insert).toHaveBeenCalledExactlyOnceWith('insertText', false, 'Enhance details');
    expect(prompt).toHaveValue('Enhance details');
    expect(useMaskStore.getState().drafts['image-1']?.prompt).toBe('Enhance details');
  });
});

describe('the reach of a fix', () => {
  const exactMask = () => screen.findByRole('switch', { name: 'Exact mask' });

  test('follows the prompt: exact for edits, beyond the mask for removals', async () => {
    const api = withImage();
    open(api);
    await draw();
    await userEvent.type(await field(), 'a red circle');
    await waitFor(async () => expect(await exactMask()).toBeChecked());
    expect(await mask()).toHaveAttribute('data-reach', '0');
    expect(screen.getByText('Every pixel outside your mask stays exactly as it is.')).toBeVisible();
    await userEvent.clear(await field());
    await userEvent.type(await field(), 'remove it');
    await waitFor(async () => expect(await mask()).toHaveAttribute('data-reach', '15'));
    expect(await exactMask()).not.toBeChecked();
    expect(screen.getByText(/blend in up to 15 px beyond your mask, as far as the thin line/)).toBeVisible();
    await userEvent.click(await enabledRunButton());
    // The API has the same default.
    await waitFor(() => expect(api.exactMasks).toEqual([null]));
  });

  test('is what the user chooses, whatever the prompt', async () => {
    const api = withImage();
    open(api);
    await draw();
    await userEvent.click(await exactMask());
    await userEvent.type(await field(), 'remove it');
    await userEvent.click(await enabledRunButton());
    await waitFor(() => expect(api.exactMasks).toEqual(['true']));
    expect(await mask()).toHaveAttribute('data-reach', '0');
  });

  test('does not hold up a run while nothing is known about the prompt', async () => {
    const api = withImage();
    open(api);
    server.use(http.post('*/api/magic-images/meaning', () => HttpResponse.error()));
    await run('remove it');
    await waitFor(() => expect(api.prompts).toEqual(['remove it']));
  });
});

test('a prompt that this server cannot follow is refused while typing', async () => {
  const api = withImage();
  open(api);
  await draw();
  await userEvent.type(await field(), 'a dragon');
  expect(await screen.findByText(/No dragons here/)).toBeVisible();
  expect(await field()).toBeInvalid();
  await userEvent.click(await enabledRunButton());
  expect(api.prompts).toEqual([]);
  await userEvent.clear(await field());
  await userEvent.type(await field(), 'remove it');
  expect(await field()).toBeValid();
  await userEvent.click(await enabledRunButton());
  await waitFor(() => expect(api.prompts).toEqual(['remove it']));
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
