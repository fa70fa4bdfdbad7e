import { fireEvent, screen, waitFor } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { HttpResponse, http } from 'msw';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { aConfig, aResult } from '@/testing/builders';
import {
  draw,
  enabledRunButton,
  field,
  mask,
  open,
  prepareMagicPage,
  run,
  surface,
  withImage,
} from '@/testing/magic-page';
import { renderApp } from '@/testing/render-app';
import { server } from '@/testing/server';

vi.mock('@/features/mask/mask-layer', () => import('@/testing/mask-layer'));

prepareMagicPage();

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

  describe('in a window that does not show the results', () => {
    const scrolled: Element[] = [];
    beforeEach(() => {
      scrolled.length = 0;
      Element.prototype.scrollIntoView = function () {
        scrolled.push(this);
      };
      vi.stubGlobal('matchMedia', () => ({ matches: true }));
      vi.spyOn(Element.prototype, 'getBoundingClientRect').mockImplementation(function (this: Element) {
        return new DOMRect(0, this.matches('section') ? window.innerHeight : 0);
      });
    });
    afterEach(() => {
      // jsdom has none.
      Reflect.deleteProperty(Element.prototype, 'scrollIntoView');
    });

    test('scrolls to them', async () => {
      open(withImage());
      await run();
      await waitFor(() => expect(scrolled).toEqual([screen.getByRole('region', { name: 'Results' })]));
    });

    test('leaves the picture where it is while the user draws', async () => {
      open(withImage());
      await draw();
      await userEvent.type(await field(), 'remove it');
      fireEvent.keyDown(await field(), { key: 'Enter', ctrlKey: true });
      (await surface()).focus();
      await screen.findByRole('img', { name: 'Result 1' });
      expect(scrolled).toEqual([]);
    });
  });

  test('folds a long prompt', async () => {
    const prompt = 'remove the object on the left, and whatever lies behind it on the table';
    open(withImage({ fixed: [aResult({ prompt })] }));
    const text = await screen.findByText(`“${prompt}”`);
    expect(text.closest('details')).not.toHaveAttribute('open');
    await userEvent.click(text);
    expect(text.closest('details')).toHaveAttribute('open');
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

  test('shows the result while Enter is held down, which clicks again and again', async () => {
    open(withImage({ fixed: [aResult()] }));
    const button = await screen.findByRole('button', { name: 'Hold to see the result' });
    await mask();
    const shown = async () => (await surface()).querySelector('img')?.getAttribute('src');
    const user = userEvent.setup();
    button.focus();
    // An even number: the clicks after the first would switch it off again.
    await user.keyboard('{Enter>4}');
    expect(await shown()).toBe('/api/files/result-1');
    const clock = vi.spyOn(Date, 'now').mockReturnValue(Date.now() + 1000);
    await user.keyboard('{/Enter}');
    clock.mockRestore();
    expect(await shown()).toBe('/api/files/image-1');
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
