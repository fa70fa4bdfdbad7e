import { fireEvent, screen, waitFor, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import { saveFile } from '@/lib/download';
import { readImageSize } from '@/lib/image-size';
import { stubFrame } from '@/testing/frame';
import type { MockApi } from '@/testing/mock-api';
import { open, press, withResults } from '@/testing/tool-page';

// jsdom cannot decode images and has no canvas.
vi.mock('@/lib/image-size', () => ({ readImageSize: vi.fn() }));
vi.mock('@/lib/download', () => ({ saveFile: vi.fn() }));

beforeEach(() => {
  vi.mocked(readImageSize).mockReset().mockResolvedValue({ x: 800, y: 600 });
  vi.mocked(saveFile).mockReset();
});

/** Draws over the middle of the cutout. */
async function touchUp() {
  const surface = await screen.findByRole('application', { name: /Cutout to touch up/ });
  fireEvent.pointerDown(surface, { pointerId: 1, clientX: 100, clientY: 100, button: 0, buttons: 1 });
  fireEvent.pointerMove(surface, { pointerId: 1, clientX: 200, clientY: 120, buttons: 1 });
  fireEvent.pointerUp(surface, { pointerId: 1, clientX: 200, clientY: 120 });
}

describe('touching up a cutout', () => {
  beforeEach(() => {
    stubFrame();
    vi.spyOn(HTMLCanvasElement.prototype, 'getContext').mockReturnValue(null);
  });

  async function openBrush(path?: string, api?: MockApi) {
    const app = open(path, api);
    await press('Finish');
    await press('Touch up the edges');
    return app;
  }

  test('sends the touch-up along, with undo, redo and reset', async () => {
    const { api } = await openBrush();
    const named = (name: string) => screen.getByRole('button', { name });
    expect(await screen.findByRole('radio', { name: 'Erase' })).toBeChecked();
    expect(named('Reset')).toHaveAttribute('aria-disabled', 'true');
    await touchUp();
    await userEvent.click(named('Undo'));
    expect(named('Undo')).toHaveAttribute('aria-disabled', 'true');
    await userEvent.click(named('Redo'));
    await userEvent.click(named('Reset'));
    expect(named('Reset')).toHaveAttribute('aria-disabled', 'true');
    await userEvent.click(named('Undo'));
    await press('Done');
    expect(screen.getByRole('button', { name: 'Touch up the edges' })).toHaveFocus();
    expect(screen.getByText('Touched up')).toBeVisible();
    await press('Download');
    await waitFor(() => expect(api.renders[0]?.files).toEqual(['touchUp']));
  });

  test('keeps its picture when a run ends, which the badge on the new result shows', async () => {
    const api = withResults();
    const job = api.startJob({ imageId: 'image-1' });
    await openBrush(undefined, api);
    const surface = await screen.findByRole('application', { name: /Cutout to touch up/ });
    api.finish(job);
    const added = await screen.findByRole('button', { name: 'Result 4' });
    expect(added.closest('li')).toHaveTextContent('NEW');
    expect(added).toHaveAttribute('aria-pressed', 'false');
    expect(surface).toBeInTheDocument();
    expect(screen.getByText('The result is ready')).toBeInTheDocument();
    await press('Done');
    expect(screen.getByRole('button', { name: 'Result 1' })).toHaveAttribute('aria-pressed', 'true');
  });

  test('says that the picture is loading or could not be loaded, and tries again', async () => {
    let isBroken = true;
    const asked: [url: string, crossOrigin: string | null][] = [];
    vi.stubGlobal(
      'Image',
      class {
        crossOrigin: string | null = null;
        onload = () => {};
        onerror = () => {};
        set src(url: string) {
          asked.push([url, this.crossOrigin]);
          setTimeout(() => (isBroken ? this.onerror() : this.onload()));
        }
      },
    );
    const api = withResults();
    for (const result of api.results) result.previewUrl = `/api/files/preview-${result.imageId}`;
    await openBrush(undefined, api);
    expect(await screen.findByText('This part of the page could not be loaded.')).toBeVisible();
    // A picture from another origin would make the canvas unreadable.
    expect(asked).toContainEqual(['/api/files/preview-a', 'anonymous']);
    isBroken = false;
    await userEvent.click(screen.getByRole('button', { name: 'Try again' }));
    await waitFor(() => expect(screen.queryByText('This part of the page could not be loaded.')).toBeNull());
    vi.unstubAllGlobals();
  });

  test('belongs to one result', async () => {
    await openBrush();
    await touchUp();
    await press('Result 2');
    expect(screen.getByRole('button', { name: 'Undo' })).toHaveAttribute('aria-disabled', 'true');
    await press('Result 1');
    expect(screen.getByRole('button', { name: 'Undo' })).toBeEnabled();
  });

  test('asks before the page is left with a touch-up that is in no file', async () => {
    const { router } = await openBrush();
    await touchUp();
    const leave = () => userEvent.click(screen.getByRole('link', { name: 'Choose another image' }));
    await leave();
    const question = within(await screen.findByRole('alertdialog'));
    expect(router.state.location.pathname).toBe('/remove-background/image-1');
    await userEvent.click(question.getByRole('button', { name: 'Cancel' }));
    await waitFor(() => expect(screen.getByRole('link', { name: 'Choose another image' })).toHaveFocus());
    const reload = new Event('beforeunload', { cancelable: true });
    window.dispatchEvent(reload);
    expect(reload.defaultPrevented).toBe(true);

    await press('Download');
    await waitFor(() => expect(saveFile).toHaveBeenCalled());
    await leave();
    await waitFor(() => expect(router.state.location.pathname).toBe('/remove-background'));
  });

  test('can go on to another tool after an answer to stay', async () => {
    const { router } = await openBrush();
    await touchUp();
    await press('Done');
    await press('Use in Magic Fix');
    const question = within(await screen.findByRole('alertdialog'));
    await userEvent.click(question.getByRole('button', { name: 'Cancel' }));
    await waitFor(() => expect(screen.getByRole('button', { name: 'Use in Magic Fix' })).toBeEnabled());
    await press('Use in Magic Fix');
    await userEvent.click(
      within(await screen.findByRole('alertdialog')).getByRole('button', { name: 'Leave' }),
    );
    await waitFor(() => expect(router.state.location.pathname).toMatch(/^\/magic\//));
  });

  test('a picture whose page was declined does not turn up there later', async () => {
    const { router } = await openBrush();
    await touchUp();
    const picture = new File(['bytes'], 'holiday.png', { type: 'image/png' });
    fireEvent.paste(document.body, { clipboardData: { files: [picture] } });
    const question = within(await screen.findByRole('alertdialog'));
    await userEvent.click(question.getByRole('button', { name: 'Cancel' }));
    await press('Download');
    await waitFor(() => expect(saveFile).toHaveBeenCalled());
    await userEvent.click(screen.getByRole('link', { name: 'Choose another image' }));
    await waitFor(() => expect(router.state.location.pathname).toBe('/remove-background'));
    // The page has loaded all it shows.
    await screen.findByRole('button', { name: /^Image of/ });
    expect(screen.queryByRole('img', { name: 'Preview of holiday.png' })).toBeNull();
  });

  test('can be left without it', async () => {
    const { router } = await openBrush();
    await touchUp();
    await userEvent.click(screen.getByRole('link', { name: 'Choose another image' }));
    await userEvent.click(
      within(await screen.findByRole('alertdialog')).getByRole('button', { name: 'Leave' }),
    );
    await waitFor(() => expect(router.state.location.pathname).toBe('/remove-background'));
  });
});
