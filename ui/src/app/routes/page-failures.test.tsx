import { screen, waitFor } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { HttpResponse, http } from 'msw';
import { describe, expect, test } from 'vitest';
import { breakGet } from '@/testing/break-get';
import { server } from '@/testing/server';
import { open, press } from '@/testing/tool-page';

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
