import { fireEvent, screen, waitFor } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { HttpResponse, http } from 'msw';
import { beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { saveFile } from '@/lib/download';
import { readImageSize } from '@/lib/image-size';
import { setCatalogue } from '@/lib/translate';
import { stubFrame } from '@/testing/frame';
import { server } from '@/testing/server';
import { aSignInPage } from '@/testing/sign-in-page';
import { open, picture, press } from '@/testing/tool-page';

// jsdom cannot decode images and has no canvas.
vi.mock('@/lib/image-size', () => ({ readImageSize: vi.fn() }));
vi.mock('@/lib/download', () => ({ saveFile: vi.fn() }));

beforeEach(() => {
  vi.mocked(readImageSize).mockReset().mockResolvedValue({ x: 800, y: 600 });
  vi.mocked(saveFile).mockReset();
});

describe('finishing a cutout', () => {
  const background = async () => (await picture()).parentElement?.style.background ?? '';
  const plain = { quality: 90, background: null, shadow: null, crop: null };
  const choose = async (label: string, option: string) =>
    userEvent.selectOptions(await screen.findByRole('combobox', { name: label }), option);
  const slide = (name: string, value: number) =>
    fireEvent.change(screen.getByRole('slider', { name }), { target: { value } });

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
});
