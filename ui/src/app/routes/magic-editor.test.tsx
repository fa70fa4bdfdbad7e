import { fireEvent, screen, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { useMaskStore } from '@/features/mask/mask-store';
import { anImage, aResult } from '@/testing/builders';
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
import { drawnFor } from '@/testing/mask-layer';

vi.mock('@/features/mask/mask-layer', () => import('@/testing/mask-layer'));

prepareMagicPage();

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
