import { fireEvent, screen, waitFor } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import { aResult } from '@/testing/builders';
import { stubFrame } from '@/testing/frame';
import { open, picture, press, withResults } from '@/testing/tool-page';

describe('the zoom view', () => {
  const frame = () => screen.findByRole('application', { name: /enlarged/ });
  const level = () => screen.findByText(/^\d+%$/);

  beforeEach(() => {
    stubFrame();
  });

  test('starts at actual pixels, with the focus in it', async () => {
    open();
    await press('Zoom');
    const surface = await frame();
    await waitFor(() => expect(surface).toHaveFocus());
    expect(await level()).toHaveTextContent('100%');
  });

  test('is controlled with keys', async () => {
    open();
    await press('Zoom');
    const shown = (await frame()).querySelector('img') as HTMLImageElement;
    await waitFor(() => expect(shown.style.width).toBe('1200px'));
    await userEvent.keyboard('+');
    expect(await level()).toHaveTextContent('150%');
    const before = Number.parseFloat(shown.style.left);
    await userEvent.keyboard('{ArrowRight}');
    expect(Number.parseFloat(shown.style.left)).toBe(before - 48);
    await userEvent.keyboard('0');
    expect(await level()).toHaveTextContent('50%');
    expect(screen.getByRole('button', { name: 'Fit' })).toBeDisabled();
    await userEvent.keyboard('1');
    expect(await level()).toHaveTextContent('100%');
    await userEvent.keyboard('{Escape}');
    expect(screen.queryByRole('application')).toBeNull();
    expect(screen.getByRole('button', { name: 'Zoom' })).toHaveFocus();
    expect(await picture()).toBeVisible();
  });

  test('compares the original with the result at the same zoom', async () => {
    open();
    await press('Compare');
    const surface = await screen.findByRole('application');
    const sources = () => Array.from(surface.querySelectorAll('img'), (img) => img.getAttribute('src'));
    await waitFor(() => expect(sources()).toEqual(['/api/files/a', '/api/files/image-1']));
    await press('1:1');
    expect(Array.from(surface.querySelectorAll('img'), ({ style }) => style.width)).toEqual([
      '1200px',
      '1200px',
    ]);
    const slider = screen.getByRole('slider', { name: 'Compare the original with the result' });
    fireEvent.change(slider, { target: { value: '80' } });
    expect(slider).toHaveAttribute('aria-valuetext', '80 percent original');
    await press('Side by side');
    expect(sources()).toEqual(['/api/files/image-1']);
    await press('Hold');
    expect(sources()).toEqual(['/api/files/a']);
    const hold = screen.getByRole('button', { name: 'Hold to see the original' });
    fireEvent.pointerDown(hold);
    expect(sources()).toEqual(['/api/files/image-1']);
    const clock = vi.spyOn(Date, 'now').mockReturnValue(Date.now() + 1000);
    fireEvent.pointerUp(hold);
    clock.mockRestore();
    fireEvent.click(hold);
    expect(sources()).toEqual(['/api/files/a']);
    // Assistive technology clicks without a press.
    fireEvent.click(hold);
    expect(sources()).toEqual(['/api/files/image-1']);
    await userEvent.click(hold);
    expect(sources()).toEqual(['/api/files/a']);
    surface.focus();
    await userEvent.keyboard('{Escape}');
    expect(screen.getByRole('button', { name: 'Compare' })).toHaveFocus();
  });

  test('has the buttons of a comparison below the picture where both do not fit', async () => {
    open();
    await press('Compare');
    const buttons = (await screen.findByRole('group', { name: 'Compare as' })).parentElement;
    expect(buttons?.classList).toContain('sm:absolute');
    expect(buttons?.classList).not.toContain('absolute');
  });

  test('zooms both halves side by side with the wheel, at the pointer', async () => {
    open();
    await press('Compare');
    const left = await screen.findByRole('application');
    await press('Side by side');
    const right = left.nextElementSibling as HTMLElement;
    vi.spyOn(right, 'getBoundingClientRect').mockReturnValue(new DOMRect(602, 0, 600, 400));
    const corners = () =>
      [left, right].map((half) => {
        const { style } = half.querySelector('img') as HTMLImageElement;
        return [style.left, style.top, style.width];
      });
    expect(corners()).toEqual(Array(2).fill(['0px', '0px', '600px']));
    // Twice as large, with the top left corner in its place.
    fireEvent.wheel(right, { ctrlKey: true, deltaY: -1_000, clientX: 602, clientY: 0 });
    expect(corners()).toEqual(Array(2).fill(['0px', '0px', '1200px']));
    left.focus();
    fireEvent.wheel(right, { deltaY: -1_000, clientX: 602, clientY: 0 });
    expect(corners()).toEqual(Array(2).fill(['0px', '0px', '2400px']));
  });

  test('is controlled with buttons', async () => {
    open();
    await press('Zoom');
    await waitFor(async () => expect(await frame()).toHaveFocus());
    await press('Zoom in');
    expect(await level()).toHaveTextContent('150%');
    await press('1:1');
    expect(await level()).toHaveTextContent('100%');
    await press('Fit');
    expect(await level()).toHaveTextContent('50%');
    expect(screen.getByRole('button', { name: 'Zoom out' })).toBeDisabled();
  });

  test('is zoomed by a trackpad pinch in Safari, at the pointer', async () => {
    open();
    await press('Zoom');
    const surface = await frame();
    const shown = surface.querySelector('img') as HTMLImageElement;
    await waitFor(() => expect(shown.style.width).toBe('1200px'));
    const pinch = (type: string, scale: number) => {
      const event = new Event(type, { cancelable: true });
      fireEvent(surface, Object.assign(event, { scale, clientX: 0, clientY: 0 }));
      expect(event.defaultPrevented).toBe(true);
    };
    const left = () => Number.parseFloat(shown.style.left);
    const before = left();
    pinch('gesturestart', 1);
    pinch('gesturechange', 1.5);
    expect(await level()).toHaveTextContent('150%');
    expect(left()).toBe(before * 1.5);
    pinch('gesturechange', 2);
    expect(await level()).toHaveTextContent('200%');
    pinch('gesturestart', 1);
    pinch('gesturechange', 0.5);
    expect(await level()).toHaveTextContent('100%');
  });

  test('opens with a click on the picture, and pans by dragging', async () => {
    open();
    await userEvent.click(await picture());
    const surface = await frame();
    const shown = surface.querySelector('img') as HTMLImageElement;
    await waitFor(() => expect(shown.style.width).toBe('1200px'));
    const before = Number.parseFloat(shown.style.left);
    fireEvent.pointerDown(surface, { pointerId: 1, clientX: 300, clientY: 200, button: 0, buttons: 1 });
    fireEvent.pointerMove(surface, { pointerId: 1, clientX: 260, clientY: 200, buttons: 1 });
    fireEvent.pointerUp(surface, { pointerId: 1, clientX: 260, clientY: 200 });
    expect(Number.parseFloat(shown.style.left)).toBe(before - 40);
  });
});

test.each(['Compare', 'Zoom'])('%s keeps its picture when a run ends', async (view) => {
  stubFrame();
  const api = withResults();
  const job = api.startJob({ imageId: 'image-1' });
  open(undefined, api);
  await press(view);
  await screen.findByRole('application');
  api.finish(job);
  expect(await screen.findByRole('button', { name: 'Result 4' })).toHaveAttribute('aria-pressed', 'false');
  expect(screen.getByRole('button', { name: 'Result 1' })).toHaveAttribute('aria-pressed', 'true');
});

test('a large result shows its preview, and the whole picture when enlarged', async () => {
  const large = aResult({ imageId: 'a', previewUrl: '/api/files/a?preview' });
  open(undefined, withResults({ results: [large] }));
  expect(await picture()).toHaveAttribute('src', '/api/files/a?preview');
  stubFrame();
  await press('Compare');
  const compare = await screen.findByRole('application');
  const shown = () => compare.querySelector('img')?.getAttribute('src');
  await waitFor(() => expect(shown()).toBe('/api/files/a?preview'));
  await press('Zoom in');
  expect(shown()).toBe('/api/files/a');
});
