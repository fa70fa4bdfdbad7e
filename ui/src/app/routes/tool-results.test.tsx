import { fireEvent, screen, waitFor, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { HttpResponse, http } from 'msw';
import { beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { saveFile } from '@/lib/download';
import { readImageSize } from '@/lib/image-size';
import { setCatalogue } from '@/lib/translate';
import { breakGet } from '@/testing/break-get';
import { anImage, aResult } from '@/testing/builders';
import { stubFrame } from '@/testing/frame';
import { MockApi } from '@/testing/mock-api';
import { renderApp } from '@/testing/render-app';
import { server } from '@/testing/server';
import { aSignInPage } from '@/testing/sign-in-page';

// jsdom cannot decode images and has no canvas.
vi.mock('@/lib/image-size', () => ({ readImageSize: vi.fn() }));
vi.mock('@/lib/download', () => ({ saveFile: vi.fn() }));

const withResults = (change: Partial<MockApi> = {}) =>
  Object.assign(new MockApi(), {
    images: [anImage()],
    results: ['a', 'b', 'c'].map((imageId, index) =>
      aResult({ imageId, createdAt: `2026-11-20T10:0${index}:00Z` }),
    ),
    upscaled: [aResult({ imageId: 'large', factor: 2 })],
    ...change,
  });
const open = (path = '/remove-background/image-1', api = withResults()) =>
  renderApp(path, { api, signedIn: true });
const press = (name: string) =>
  screen.findByRole('button', { name }).then((button) => userEvent.click(button));
const picture = () => screen.findByRole('img', { name: 'Result without its background' });

beforeEach(() => {
  vi.mocked(readImageSize).mockReset().mockResolvedValue({ x: 800, y: 600 });
  vi.mocked(saveFile).mockReset();
});

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

describe('finishing a cutout', () => {
  const background = async () => (await picture()).parentElement?.style.background ?? '';
  const plain = { quality: 90, background: null, shadow: null, crop: null };
  const choose = async (label: string, option: string) =>
    userEvent.selectOptions(await screen.findByRole('combobox', { name: label }), option);
  const slide = (name: string, value: number) =>
    fireEvent.change(screen.getByRole('slider', { name }), { target: { value } });

  /** Draws over the middle of the cutout. */
  async function touchUp() {
    const surface = await screen.findByRole('application', { name: /Cutout to touch up/ });
    fireEvent.pointerDown(surface, { pointerId: 1, clientX: 100, clientY: 100, button: 0, buttons: 1 });
    fireEvent.pointerMove(surface, { pointerId: 1, clientX: 200, clientY: 120, buttons: 1 });
    fireEvent.pointerUp(surface, { pointerId: 1, clientX: 200, clientY: 120 });
  }

  test('the plain PNG is the stored file; other formats come from the API', async () => {
    const { api } = open();
    server.use(http.get('*/api/files/a', () => new HttpResponse('stored')));
    await press('Download');
    await waitFor(() => expect(saveFile).toHaveBeenLastCalledWith(expect.anything(), 'downloaded_image.png'));
    expect(await vi.mocked(saveFile).mock.lastCall?.[0].text()).toBe('stored');
    await choose('Format', 'webp');
    await press('Download');
    await waitFor(() =>
      expect(saveFile).toHaveBeenLastCalledWith(expect.anything(), 'downloaded_image.webp'),
    );
    expect(api.calls).toContain('GET /api/results/a/file?format=webp&quality=90');
    expect(api.renders).toEqual([]);
  });

  test.each([
    ['the stored file', 'png', http.get('*/api/files/a', aSignInPage)],
    ['a file in another format', 'webp', http.get('*/api/results/a/file', aSignInPage)],
    ['a rendered file', 'jpg', http.post('*/api/results/a/render', aSignInPage)],
  ])('the page of a network that asks to sign in is not saved as %s', async (kind, format, handler) => {
    open();
    server.use(handler);
    if (kind === 'a rendered file') {
      await press('Finish');
      await userEvent.click(await screen.findByRole('radio', { name: 'Black' }));
    }
    await choose('Format', format);
    await press('Download');
    expect(await screen.findByText('Failed to download image')).toBeVisible();
    expect(saveFile).not.toHaveBeenCalled();
  });

  test('a color is shown at once, and rendered into the download', async () => {
    const { api } = open();
    expect(await background()).toBe('');
    await press('Finish');
    expect(await screen.findByRole('radio', { name: 'Transparent' })).toBeChecked();
    await userEvent.click(screen.getByRole('radio', { name: 'Black' }));
    expect(await background()).toBe('rgb(0, 0, 0)');
    await choose('Format', 'webp');
    await press('Download');
    await waitFor(() =>
      expect(saveFile).toHaveBeenLastCalledWith(expect.anything(), 'downloaded_image.webp'),
    );
    const options = { ...plain, format: 'webp', background: { color: '#000000' } };
    expect(api.renders).toEqual([{ resultId: 'a', options, files: [] }]);
  });

  test('can be any color, or a gradient', async () => {
    open();
    await press('Finish');
    fireEvent.change(await screen.findByLabelText('Custom color'), { target: { value: '#123456' } });
    expect(await background()).toBe('rgb(18, 52, 86)');
    await userEvent.click(screen.getByRole('radio', { name: 'Gradient' }));
    slide('Direction', 90);
    expect(await background()).toMatch(/^linear-gradient\(90deg/);
  });

  test('can be a custom picture', async () => {
    const { api } = open();
    await press('Finish');
    const file = await screen.findByLabelText('Background picture');
    vi.mocked(readImageSize).mockRejectedValueOnce(new Error('no image'));
    await userEvent.upload(file, new File(['bytes'], 'broken.png', { type: 'image/png' }));
    expect(await screen.findByRole('alert')).toHaveTextContent('We can’t read this file as an image');
    expect(await background()).toBe('');
    // The browser shows these, and the server would refuse them at the download.
    vi.mocked(readImageSize).mockResolvedValueOnce({ x: 6001, y: 100 });
    await userEvent.upload(file, new File(['bytes'], 'wide.png', { type: 'image/png' }));
    expect(await screen.findByRole('alert')).toHaveTextContent('Image dimensions too big');
    const anyFile = userEvent.setup({ applyAccept: false });
    await anyFile.upload(file, new File(['bytes'], 'beach.gif', { type: 'image/gif' }));
    await waitFor(() => expect(screen.getByRole('alert')).toHaveTextContent('Choose a JPG, PNG or WebP'));
    expect(await background()).toBe('');

    await userEvent.upload(file, new File(['bytes'], 'beach.png', { type: 'image/png' }));
    await waitFor(async () => expect(await background()).toMatch(/url\("?blob:test-/));
    expect(screen.queryByRole('alert')).toBeNull();
    await press('Download');
    await waitFor(() => expect(api.renders[0]?.files).toEqual(['background']));
    expect(api.renders[0]?.options).toEqual({ ...plain, format: 'png', background: { picture: true } });
  });

  test('keeps a custom picture in memory only until the page is left', async () => {
    const { unmount } = open();
    await press('Finish');
    const file = await screen.findByLabelText('Background picture');
    await userEvent.upload(file, new File(['bytes'], 'beach.png', { type: 'image/png' }));
    await waitFor(async () => expect(await background()).toMatch(/blob:test-/));
    const url = vi.mocked(URL.createObjectURL).mock.results.at(-1)?.value;
    expect(URL.revokeObjectURL).not.toHaveBeenCalledWith(url);
    unmount();
    expect(URL.revokeObjectURL).toHaveBeenCalledWith(url);
  });

  test('a shadow, a crop for shops, and a blurred original', async () => {
    const { api } = open();
    await press('Finish');
    await userEvent.click(await screen.findByRole('radio', { name: 'Blurred original' }));
    slide('Blur', 1.5);
    await userEvent.click(screen.getByRole('switch', { name: 'Shadow' }));
    slide('Strength', 50);
    await choose('Crop', 'Marketplace square (1:1)');
    slide('Margin', 12);
    await press('Download');
    await waitFor(() => expect(api.renders).toHaveLength(1));
    expect(api.renders[0]?.options).toEqual({
      format: 'png',
      quality: 90,
      background: { blur: 1.5 },
      shadow: { opacity: 0.5, blur: 2, x: 0, y: 2 },
      crop: { margin: 12, aspect: '1:1' },
    });
  });

  test('shows the values of sliders as the language writes numbers', async () => {
    setCatalogue({}, 'de');
    onTestFinished(() => setCatalogue({}, 'en'));
    open();
    await press('Finish');
    await userEvent.click(await screen.findByRole('switch', { name: 'Shadow' }));
    slide('Softness', 2.5);
    expect(screen.getByText('2,5 %')).toBeVisible();
    expect(screen.getByRole('slider', { name: 'Softness' })).toHaveAttribute('aria-valuetext', '2,5 %');
  });

  test('says why a file could not be made', async () => {
    open();
    await press('Finish');
    await choose('Crop', 'To the subject');
    const detail = 'The finished picture would have more than 36 megapixels.';
    server.use(http.post('*/api/results/:id/render', () => HttpResponse.json({ detail }, { status: 422 })));
    await press('Download');
    expect(await screen.findByText('Failed to download image')).toBeVisible();
    expect(await screen.findByText(detail)).toBeVisible();
    expect(saveFile).not.toHaveBeenCalled();
  });

  describe('enlarged', () => {
    const sources = async () =>
      Array.from((await screen.findByRole('application')).querySelectorAll('img'), ({ src }) => src);

    beforeEach(() => {
      stubFrame();
      vi.spyOn(HTMLCanvasElement.prototype, 'getContext').mockReturnValue(null);
    });

    test('is the rendered file, which is rendered again when a slider rests', async () => {
      const { api } = open();
      await press('Finish');
      await userEvent.click(await screen.findByRole('switch', { name: 'Shadow' }));
      await press('Zoom');
      expect(await screen.findByText('Rendering in full size…')).toBeVisible();
      await waitFor(async () => expect(await sources()).toEqual([expect.stringMatching(/^blob:/)]));
      expect(api.renders).toMatchObject([{ options: { format: 'png', shadow: { blur: 2 } } }]);
      slide('Softness', 3);
      slide('Softness', 4);
      await waitFor(() => expect(api.renders).toHaveLength(2));
      expect(api.renders[1]?.options).toMatchObject({ shadow: { blur: 4 } });
      await press('Compare');
      await waitFor(async () =>
        expect(await sources()).toEqual([expect.stringMatching(/^blob:/), expect.stringMatching(/image-1$/)]),
      );
    });

    test('is no longer rendered once it has changed again', async () => {
      open();
      const rendered = vi.fn(() => new Promise<never>(() => {}));
      server.use(http.post('*/api/results/:id/render', rendered));
      const abort = vi.spyOn(window.XMLHttpRequest.prototype, 'abort');
      await press('Finish');
      await userEvent.click(await screen.findByRole('switch', { name: 'Shadow' }));
      await press('Zoom');
      await waitFor(() => expect(rendered).toHaveBeenCalledOnce());
      expect(abort).not.toHaveBeenCalled();
      slide('Softness', 3);
      expect(abort).toHaveBeenCalledOnce();
    });

    test('cannot be compared with the original after a crop', async () => {
      open();
      await press('Compare');
      await press('Finish');
      await choose('Crop', 'To the subject');
      expect(screen.queryByRole('button', { name: 'Compare' })).toBeNull();
      expect(screen.getByRole('button', { name: 'Result' })).toHaveAttribute('aria-pressed', 'true');
      expect(screen.queryByRole('application')).toBeNull();
    });

    test('says why it could not be rendered, and shows the preview', async () => {
      const detail = 'The finished picture would have more than 36 megapixels.';
      open();
      server.use(http.post('*/api/results/:id/render', () => HttpResponse.json({ detail }, { status: 422 })));
      await press('Finish');
      await choose('Crop', 'To the subject');
      await press('Zoom');
      expect(await screen.findByText(detail)).toBeVisible();
      expect(screen.getByRole('button', { name: 'Result' })).toHaveAttribute('aria-pressed', 'true');
    });
  });

  test('is kept when another result is selected', async () => {
    open();
    await press('Finish');
    await userEvent.click(await screen.findByRole('radio', { name: 'White' }));
    await press('Result 2');
    expect(await background()).toBe('rgb(255, 255, 255)');
  });

  test('is not offered for opaque results', async () => {
    open('/upscale/image-1');
    expect(await screen.findByRole('button', { name: 'Download' })).toBeVisible();
    expect(screen.queryByRole('button', { name: 'Finish' })).toBeNull();
  });

  describe('with the brush', () => {
    beforeEach(() => {
      vi.spyOn(HTMLElement.prototype, 'clientWidth', 'get').mockReturnValue(600);
      vi.spyOn(HTMLElement.prototype, 'clientHeight', 'get').mockReturnValue(400);
      vi.spyOn(HTMLCanvasElement.prototype, 'getContext').mockReturnValue(null);
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
      await waitFor(() =>
        expect(screen.queryByText('This part of the page could not be loaded.')).toBeNull(),
      );
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
      await screen.findByLabelText('Image file');
      await new Promise((resolve) => setTimeout(resolve, 100));
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
});

describe('the facts of a result', () => {
  test('are shown in one line, and in full on request', async () => {
    open();
    const line = await screen.findByText('1200 × 800 px · 1.8 s · 5 credits');
    expect(screen.queryByText('CPU')).toBeNull();
    await userEvent.click(line);
    expect(await screen.findByText('CPU')).toBeVisible();
    const facts = screen.getAllByRole('definition').map(({ textContent }) => textContent);
    expect(facts).toEqual(
      expect.arrayContaining(['isnet', `SHA-256 ${'f'.repeat(64)}`, '1.8 s', '5 credits', 'job-1']),
    );
  });

  test('label demo models and free runs', async () => {
    const results = [aResult({ credits: 0, demo: true, model: 'tiny', device: 'cuda' })];
    open(undefined, withResults({ results }));
    await userEvent.click(await screen.findByText('1200 × 800 px · 1.8 s · free'));
    expect(await screen.findByText('tiny (demo)')).toBeVisible();
    expect(screen.getByText('GPU (CUDA)')).toBeVisible();
    expect(screen.getByText('Free')).toBeVisible();
  });
});

test("a result on its image's page links to the tool page, where it is selected", async () => {
  const { router } = open('/images/image-1');
  await userEvent.click(await screen.findByRole('link', { name: 'Background removed, result 2' }));
  await waitFor(() => expect(router.state.location.pathname).toBe('/remove-background/image-1'));
  expect(await screen.findByRole('button', { name: 'Result 2' })).toHaveAttribute('aria-pressed', 'true');
});

describe('keyboard navigation', () => {
  test('moves through the results with arrow keys; Tab stops at the selected one', async () => {
    open();
    await press('Result 1');
    await userEvent.keyboard('{ArrowRight}');
    expect(screen.getByRole('button', { name: 'Result 2' })).toHaveFocus();
    expect(screen.getByRole('button', { name: 'Result 2' })).toHaveAttribute('aria-pressed', 'true');
    await userEvent.keyboard('{End}{ArrowRight}');
    expect(screen.getByRole('button', { name: 'Result 3' })).toHaveFocus();
    await userEvent.keyboard('{Home}');
    expect(screen.getByRole('button', { name: 'Result 1' })).toHaveFocus();
    const stops = screen.getAllByRole('button', { name: /^Result \d/ }).map(({ tabIndex }) => tabIndex);
    expect(stops).toEqual([0, -1, -1]);
  });

  test.each([
    ['/remove-background/image-1', 'DELETE', 'Results'],
    ['/images/image-1', 'DELETE Background removed, result 2', 'Background removed'],
  ])('continues at the heading after a deletion: %s', async (path, button, heading) => {
    open(path);
    await press(button);
    const question = within(await screen.findByRole('alertdialog'));
    await userEvent.click(question.getByRole('button', { name: 'Delete' }));
    await waitFor(() => expect(screen.getByRole('heading', { name: heading })).toHaveFocus());
  });

  test('moves through the image grid', async () => {
    const images = ['x', 'y', 'z'].map((id) => anImage({ id }));
    open('/remove-background', withResults({ images }));
    const [first, second, third] = await screen.findAllByRole('button', { name: /^Image of/ });
    first?.focus();
    await userEvent.keyboard('{ArrowRight}');
    expect(second).toHaveFocus();
    await userEvent.keyboard('{End}');
    expect(third).toHaveFocus();
    await userEvent.keyboard('{ArrowRight}');
    expect(third).toHaveFocus();
    await userEvent.keyboard('{ArrowLeft}{Home}');
    expect(first).toHaveFocus();
  });
});

describe('runs on other pages', () => {
  test('a run of another tool is listed, and does not block this one', async () => {
    const api = withResults();
    api.startJob({ imageId: 'image-1', tool: 'upscale', factor: 4, position: 2 });
    open('/remove-background/image-1', api);
    const list = await screen.findByRole('list', { name: 'Running' });
    const link = within(list).getByRole('link', { name: 'Upscale 4X: 2 ahead · about 4 s left' });
    expect(link).toHaveAttribute('href', '/upscale/image-1');
    await waitFor(() => expect(screen.getByRole('button', { name: 'Remove Bg AI' })).toBeEnabled());
  });

  test("the image's page lists them, and then their results", async () => {
    const api = withResults({ stepMs: 30 });
    api.startJob({ imageId: 'image-1', tool: 'upscale', factor: 2 });
    open('/images/image-1', api);
    expect(await screen.findByRole('list', { name: 'Running' })).toHaveTextContent('Upscale 2X');
    expect(await screen.findByRole('img', { name: 'Upscaled, result 1' })).toBeVisible();
    // Finished by another tab.
    Object.assign(api.jobs[0] ?? {}, { state: 'done' });
    api.upscaled.push(aResult({ imageId: 'larger', factor: 2 }));
    expect(await screen.findByRole('img', { name: 'Upscaled, result 2' })).toBeVisible();
    expect(screen.queryByRole('list', { name: 'Running' })).toBeNull();
  });

  test.each(['/images', '/remove-background', '/magic'])('%s shows a badge on the image', async (path) => {
    const images = ['image-1', 'image-2'].map((id) => anImage({ id }));
    const api = withResults({ images, stepMs: 30 });
    api.startJob({ imageId: 'image-2', tool: 'upscale', factor: 2, position: 1 });
    open(path, api);
    const badge = await screen.findByText(/ahead$|^Next in line$|%$/);
    const [first, second] = screen.getAllByRole('img', { name: /^Image of/ });
    expect(second?.closest('li')).toContainElement(badge);
    expect(first?.closest('li')).not.toContainElement(badge);
  });
});

describe('an image from the clipboard', () => {
  const copied = (type: string) => ({
    clipboardData: { files: [new File(['bytes'], 'copied.png', { type })] },
  });

  test.each(['/images', '/remove-background'])('is accepted on %s', async (path) => {
    open(path);
    await screen.findByLabelText('Image file');
    fireEvent.paste(document.body, copied('image/png'));
    expect(await screen.findByRole('img', { name: 'Preview of copied.png' })).toBeVisible();
    expect(screen.getByRole('button', { name: 'Upload' })).toBeVisible();
  });

  test('is accepted while a control has the focus, except in a text field', async () => {
    open('/images');
    await screen.findByLabelText('Image file');
    const control = document.createElement('input');
    document.body.append(control);
    fireEvent.paste(control, copied('image/png'));
    expect(screen.queryByRole('img', { name: 'Preview of copied.png' })).toBeNull();
    control.type = 'checkbox';
    fireEvent.paste(control, copied('image/png'));
    control.remove();
    expect(await screen.findByRole('img', { name: 'Preview of copied.png' })).toBeVisible();
  });

  test('is accepted from a visitor; other files are ignored', async () => {
    renderApp('/upscale');
    await screen.findByLabelText('Image file');
    fireEvent.paste(document.body, copied('text/plain'));
    expect(screen.queryByRole('img', { name: /^Preview/ })).toBeNull();
    fireEvent.paste(document.body, copied('image/png'));
    expect(await screen.findByRole('img', { name: 'Preview of copied.png' })).toBeVisible();
  });
});

describe('a run that cannot start', () => {
  async function run() {
    const button = await screen.findByRole('button', { name: 'Remove Bg AI' });
    await waitFor(() => expect(button).toBeEnabled());
    return button;
  }

  test.each([
    'upstream fell over',
    // The page of a proxy.
    '<html>\n<head><style>p{}</style></head><body><h1>upstream</h1>\r\n<p>fell over</p></body></html>',
  ])('shows the raw response if it has no detail: %s', async (body) => {
    open();
    server.use(http.post('*/api/rmbg-images/remove-bg-ai', () => HttpResponse.text(body, { status: 502 })));
    await userEvent.click(await run());
    expect(await screen.findByText('HTTP error! status: 502, message: upstream fell over')).toBeVisible();
  });
});

describe('loading failures', () => {
  test.each(['/remove-background/image-1', '/images/image-1'])(
    '%s can load the image again',
    async (path) => {
      open(path);
      const repair = breakGet('*/api/images/image-1', () => HttpResponse.error());
      expect(await screen.findByRole('heading', { name: 'Failed to find your image' })).toBeVisible();
      expect(screen.getByText(/We could not reach the server/)).toBeVisible();
      repair();
      await press('Try again');
      expect(await screen.findByRole('img', { name: /^Image of/ })).toBeVisible();
    },
  );

  test('a server that answers is not called unreachable', async () => {
    open('/images/image-1');
    const detail = 'Too many requests. Try again in 2 seconds.';
    breakGet('*/api/images/image-1', () => HttpResponse.json({ detail }, { status: 429 }));
    expect(await screen.findByText(detail)).toBeVisible();
    expect(screen.queryByText(/We could not reach the server/)).toBeNull();
    expect(screen.getByRole('button', { name: 'Try again' })).toBeVisible();
  });

  test.each([
    ['the page of a network that asks to sign in', '<!doctype html><h1>Welcome to our Wi-Fi</h1>'],
    ['half an answer', '{"imageId":"image-1","url":"/api/fi'],
  ])('%s is not taken for an image', async (_, body) => {
    open('/images/image-1');
    const repair = breakGet('*/api/images/image-1', () => HttpResponse.html(body));
    expect(await screen.findByText(/We could not reach the server/)).toBeVisible();
    repair();
    await press('Try again');
    expect(await screen.findByRole('img', { name: /^Image of/ })).toBeVisible();
  });

  test('a missing image has no retry button', async () => {
    open('/remove-background/image-9');
    expect(await screen.findByText(/may have been deleted/)).toBeVisible();
    expect(screen.queryByRole('button', { name: 'Try again' })).toBeNull();
  });

  test.each([
    ['/images', '*/api/images', 'Failed to load images. Please try again later', /^Image of/],
    ['/upscale', '*/api/images', 'Failed to load images. Please try again later', /^Image of/],
    ['/upscale/image-1', '*/api/upscale/image-1', 'Failed to load upscaled images', /^Result 1/],
  ])('%s can load its list again', async (path, call, text, picture) => {
    open(path);
    const repair = breakGet(call);
    expect((await screen.findAllByText(text))[0]).toBeVisible();
    repair();
    await press('Try again');
    expect(await screen.findByRole('img', { name: picture })).toBeVisible();
  });
});
