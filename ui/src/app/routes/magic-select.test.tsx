import { act, fireEvent, screen, waitFor } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { HttpResponse, http } from 'msw';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { useMaskStore } from '@/features/mask/mask-store';
import {
  draw,
  enabledRunButton,
  field,
  mask,
  open,
  prepareMagicPage,
  surface,
  withImage,
} from '@/testing/magic-page';
import type { MockApi } from '@/testing/mock-api';
import { server } from '@/testing/server';

vi.mock('@/features/mask/mask-layer', () => import('@/testing/mask-layer'));
// jsdom has no image decoder: every mask marks three pixels.
vi.mock('@/features/mask/read-mask', () => ({
  readMask: async () => ({ kind: 'area', spans: [0, 0, 3] }),
}));

prepareMagicPage();

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

  /** Lets the test answer each request, in any order. */
  function holdAnswers(api: MockApi) {
    const answers: (() => void)[] = [];
    server.use(
      http.post('*/api/images/:id/select', async ({ request }) => {
        api.selections.push(await request.json());
        await new Promise<void>((resolve) => answers.push(resolve));
        return new HttpResponse(new Blob(), { headers: { 'Content-Type': 'image/png' } });
      }),
    );
    return answers;
  }

  test('fast clicks show each answer as it comes, as one selection', async () => {
    const api = await ready();
    const answers = holdAnswers(api);
    await tool();
    for (const [index, x] of [100, 150, 200].entries()) {
      await clickAt(x, 50);
      await waitFor(() => expect(answers).toHaveLength(index + 1));
    }
    expect(api.selections[2]).toMatchObject({ positive: [{ x: 200 }, { x: 300 }, { x: 400 }] });
    const done = () => useMaskStore.getState().drafts['image-1']?.done;
    answers[0]?.();
    await waitFor(async () => expect((await mask()).textContent).toBe('area'));
    expect(screen.getByRole('status')).toHaveTextContent('Selecting…');
    // The last one contains the second, which is no longer awaited.
    answers[2]?.();
    await waitFor(() => expect(screen.getByRole('status')).toBeEmptyDOMElement());
    expect(done()).toMatchObject([{ clicks: { positive: [{ x: 200 }] } }, { refines: true }]);
    expect((await mask()).textContent).toBe('area');
  });

  test('a box and a click that takes away replace no selection on its way', async () => {
    const api = await ready();
    const answers = holdAnswers(api);
    await tool();
    await clickAt(100, 50);
    await dragBox();
    await dragBox({ altKey: true });
    await clickAt(150, 50, { altKey: true });
    await waitFor(() => expect(answers).toHaveLength(4));
    const answered = () => useMaskStore.getState().selections.filter(({ spans }) => spans);
    for (const index of [3, 2, 1]) {
      answers[index]?.();
      // Of several imports at the same time, Vitest mocks only the first.
      await waitFor(() => expect(answered()).toHaveLength(4 - index));
      expect((await mask()).textContent).toBe('');
    }
    answers[0]?.();
    await waitFor(async () => expect((await mask()).textContent).toBe('area area erased area erased area'));
  });

  test('undo gives up only the last of several selections on their way', async () => {
    const api = await ready();
    const answers = holdAnswers(api);
    await tool();
    await clickAt(100, 50);
    await dragBox();
    await waitFor(() => expect(answers).toHaveLength(2));
    await userEvent.click(screen.getByRole('button', { name: 'Undo' }));
    answers[0]?.();
    await waitFor(() => expect(screen.getByRole('status')).toBeEmptyDOMElement());
    expect(useMaskStore.getState().drafts['image-1']?.done).toMatchObject([{ clicks: { positive: [{}] } }]);
  });

  test('a double click is one click', async () => {
    const api = await ready();
    await tool();
    await clickAt(100, 50);
    await clickAt(100, 50);
    await waitFor(async () => expect((await mask()).textContent).toBe('area'));
    await clickAt(100, 50);
    expect(api.selections).toEqual([{ positive: [{ x: 200, y: 100 }], negative: [] }]);
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
