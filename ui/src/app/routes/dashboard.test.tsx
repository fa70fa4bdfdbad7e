import { readFileSync } from 'node:fs';
import { fireEvent, screen, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { afterEach, describe, expect, test } from 'vitest';
import { aConfig } from '@/testing/builders';
import { MockApi } from '@/testing/mock-api';
import { renderApp } from '@/testing/render-app';

const MAX_BYTES = 40_000;

async function openLanding(options?: Parameters<typeof renderApp>[1]) {
  const app = renderApp('/dashboard', options);
  await screen.findByRole('heading', { name: 'AI Image Editing Made Simple' });
  return app;
}

const titlesOf = (tabs: HTMLElement[]) => tabs.map(({ textContent }) => textContent);

describe('the hero', () => {
  test('links to the three tools and invites a visitor', async () => {
    await openLanding();
    const main = within(screen.getByRole('main'));
    expect(main.getByRole('link', { name: 'Remove Background' })).toHaveAttribute(
      'href',
      '/remove-background',
    );
    expect(main.getByRole('link', { name: 'Upscale' })).toHaveAttribute('href', '/upscale');
    expect(main.getByRole('link', { name: 'Magic Fix' })).toHaveAttribute('href', '/magic');
    expect(await main.findByRole('link', { name: 'Try for free' })).toHaveAttribute('href', '/signup');
  });

  test('never invites a signed-in user, not even for a moment', async () => {
    let wasInvited = false;
    const watch = new MutationObserver(() => {
      wasInvited ||= document.body.textContent.includes('Try for free');
    });
    watch.observe(document.body, { childList: true, subtree: true, characterData: true });
    await openLanding({ signedIn: true });
    await screen.findByRole('link', { name: 'Go to My Images' });
    watch.disconnect();
    expect(wasInvited).toBe(false);
  });

  test('previews each tool', async () => {
    await openLanding();
    const previews = within(screen.getByRole('tablist', { name: 'What Retouch does' }));
    expect(titlesOf(previews.getAllByRole('tab'))).toEqual([
      'Magic Fix',
      'Remove Background',
      'Upscale image',
    ]);
    await userEvent.click(previews.getByRole('tab', { name: 'Upscale image' }));
    const panel = within(screen.getByRole('tabpanel', { name: 'Upscale image' }));
    expect(panel.getByRole('slider')).toHaveValue('50');
    expect(panel.getByRole('img', { name: /^After: / })).toBeVisible();
  });
});

describe('the sections', () => {
  test.each([
    [true, /^Drop a JPG, PNG, WebP, HEIC or AVIF file/],
    [false, /^Drop a JPG, PNG or WebP file/],
  ])('promise HEIC only where the server reads it: %s', async (heic, text) => {
    const config = aConfig({ features: { payments: false, heic, avif: true } });
    await openLanding({ api: Object.assign(new MockApi(), { config }) });
    expect(screen.getByText(text)).toBeVisible();
  });

  test.each([
    ['AI-Powered Image Magic Fix', '/magic', '8 credits per image', 1],
    ['AI-Powered Background Removal', '/remove-background', '5 credits per image', 3],
    ['AI-Powered Image Upscaling', '/upscale', '3 or 6 credits per image', 2],
  ])('%s shows examples, the price and a link', async (name, address, price, pairs) => {
    await openLanding();
    const section = within(screen.getByRole('region', { name }));
    expect(section.getByRole('link', { name: /^Try now/ })).toHaveAttribute('href', address);
    expect(section.getByText(price)).toBeVisible();
    expect(section.getAllByRole('slider')).toHaveLength(pairs);
  });

  test('a tool that is not installed is not offered', async () => {
    const config = aConfig();
    for (const tool of config.tools) tool.available = tool.tool !== 'magic-fix';
    await openLanding({ api: Object.assign(new MockApi(), { config }) });
    const section = within(screen.getByRole('region', { name: 'AI-Powered Image Magic Fix' }));
    expect(section.queryByRole('link')).toBeNull();
    expect(section.getByText('Not installed on this server yet')).toBeVisible();
  });

  test('a tool with only free runs is offered, without a price', async () => {
    const config = aConfig();
    for (const tool of config.tools) tool.available = false;
    await openLanding({ api: Object.assign(new MockApi(), { config }) });
    const section = within(screen.getByRole('region', { name: 'AI-Powered Background Removal' }));
    expect(section.getByRole('link', { name: /^Try now/ })).toHaveAttribute('href', '/remove-background');
    expect(section.queryByText(/credits per image/)).toBeNull();
  });

  test('Magic Fix has an example of each of its five uses, with the prompt in quotes', async () => {
    await openLanding();
    const uses = within(screen.getByRole('tablist', { name: 'Examples of Magic Fix' }));
    expect(titlesOf(uses.getAllByRole('tab'))).toEqual([
      'Edit Details',
      'Restore Images',
      'Remove Details',
      'Enhance Details',
      'Add Details',
    ]);
    await userEvent.click(uses.getByRole('tab', { name: 'Remove Details' }));
    const panel = screen.getByRole('tabpanel', { name: 'Remove Details' });
    expect(panel).toHaveTextContent('“remove the towers”');
    expect(panel).toHaveTextContent(/Made by [a-z]/);
    await userEvent.keyboard('{ArrowLeft}');
    expect(uses.getByRole('tab', { name: 'Restore Images' })).toHaveFocus();
    expect(screen.getByRole('tabpanel', { name: 'Restore Images' })).toBeVisible();
  });

  test('a slider reveals more of the picture before', async () => {
    await openLanding();
    const slider = screen.getByRole('slider', { name: /: a lemur/ });
    fireEvent.change(slider, { target: { value: '80' } });
    expect(slider).toHaveAttribute('aria-valuetext', '80 percent before');
    expect(slider.parentElement?.querySelector<HTMLElement>('[style*=clip-path]')?.style.clipPath).toBe(
      'inset(0 20% 0 0)',
    );
  });

  test('every picture exists, is small, and reserves its space before it loads', async () => {
    await openLanding();
    const sources = new Set<string>();
    for (const tab of screen.getAllByRole('tab')) {
      await userEvent.click(tab);
      for (const picture of screen.getAllByRole<HTMLImageElement>('img')) {
        expect(picture).toHaveAttribute('width');
        expect(picture).toHaveAttribute('height');
        expect(picture).toHaveAttribute('decoding', 'async');
        sources.add(picture.getAttribute('src')?.split('?')[0] ?? '');
      }
    }
    expect(sources).toHaveProperty('size', 25);
    for (const source of sources) {
      expect(readFileSync(`.${source}`).length, source).toBeLessThanOrEqual(MAX_BYTES);
    }
  });
});

describe('a pair that is still loading', () => {
  const boxOf = async () => {
    await openLanding();
    const box = screen.getByRole('slider', { name: /: a lemur/ }).parentElement;
    if (!box) throw new Error('the slider has no box');
    return box;
  };
  const placeholder = (box: HTMLElement) => box.querySelector('[data-loading]');

  test('shows a placeholder until both pictures have loaded', async () => {
    const box = await boxOf();
    expect(box.style.aspectRatio).toBe('660 / 440');
    const [after, before] = within(box).getAllByRole('img');
    expect(after).toHaveAttribute('loading', 'lazy');
    expect(placeholder(box)).not.toBeNull();
    fireEvent.load(after as HTMLElement);
    expect(placeholder(box)).not.toBeNull();
    fireEvent.load(before as HTMLElement);
    expect(placeholder(box)).toBeNull();
  });

  test('removes the placeholder if loading fails', async () => {
    const box = await boxOf();
    for (const picture of within(box).getAllByRole('img')) fireEvent.error(picture);
    expect(placeholder(box)).toBeNull();
  });
});

describe('the closing section', () => {
  test('leads a visitor to the sign-up', async () => {
    await openLanding();
    expect(screen.getByRole('heading', { name: 'Start Processing Images With AI' })).toBeVisible();
    expect(screen.getByRole('link', { name: 'Start now' })).toHaveAttribute('href', '/signup');
  });

  test('leads a user to the images, not to a sign-out', async () => {
    await openLanding({ signedIn: true });
    await screen.findByRole('link', { name: 'Go to My Images' });
    expect(screen.getByRole('link', { name: 'Start now' })).toHaveAttribute('href', '/images');
  });
});

describe('the rating', () => {
  const rating = { service: 'Example Reviews', url: 'https://reviews.test/widget?id=1', height: 120 };
  const api = () => {
    const config = aConfig();
    return Object.assign(new MockApi(), { config: { ...config, site: { ...config.site, rating } } });
  };
  afterEach(() => localStorage.clear());

  test('is hidden if none is configured', async () => {
    await openLanding();
    expect(screen.queryByText(/What people say/)).toBeNull();
  });

  test('loads only on request, and can be hidden again', async () => {
    await openLanding({ api: api() });
    expect(screen.getByRole('heading', { name: 'What people say on Example Reviews' })).toBeVisible();
    expect(screen.getByText(/comes from reviews\.test/)).toBeVisible();
    expect(screen.queryByTitle('Rating on Example Reviews')).toBeNull();

    await userEvent.click(screen.getByRole('button', { name: 'Show rating' }));
    expect(screen.getByTitle('Rating on Example Reviews')).toHaveAttribute('src', rating.url);
    await userEvent.click(screen.getByRole('button', { name: 'Hide rating' }));
    expect(screen.queryByTitle('Rating on Example Reviews')).toBeNull();
  });

  test('loads at once for a user who has shown it before', async () => {
    const { unmount } = await openLanding({ api: api() });
    await userEvent.click(screen.getByRole('button', { name: 'Show rating' }));
    unmount();
    await openLanding({ api: api() });
    expect(screen.getByTitle('Rating on Example Reviews')).toBeInTheDocument();
  });
});
