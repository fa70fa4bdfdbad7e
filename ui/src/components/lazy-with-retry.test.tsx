import { act, render, screen } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { HttpResponse, http } from 'msw';
import { Suspense } from 'react';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { prefetch, useReload } from '@/lib/load-with-retry';
import { server } from '@/testing/server';
import { lazyWithRetry } from './lazy-with-retry';

const Part = () => <p>The part</p>;
const missing = () => Promise.reject(new TypeError('Failed to fetch dynamically imported module'));

function show(load: Parameters<typeof lazyWithRetry>[0], failure?: null) {
  vi.useFakeTimers({ shouldAdvanceTime: true, advanceTimeDelta: 200 });
  const Lazy = lazyWithRetry(load, failure);
  render(
    <>
      <p>The rest of the page</p>
      <Suspense>
        <Lazy />
      </Suspense>
    </>,
  );
}

function serveBuild(script: string) {
  const html = `<script type="module" src="${script}"></script>`;
  const asked = vi.fn(() => HttpResponse.html(html));
  server.use(http.get(window.location.origin, asked));
  return asked;
}

afterEach(() => {
  vi.useRealTimers();
  useReload.setState({ isOutdated: false, missing: null });
  for (const script of document.head.querySelectorAll('script')) script.remove();
});

test('code that is missing for a moment is loaded again', async () => {
  const load = vi.fn(missing).mockImplementationOnce(missing);
  load.mockImplementationOnce(missing).mockImplementationOnce(async () => ({ default: Part }) as never);
  show(load as never);
  expect(await screen.findByText('The part')).toBeVisible();
  expect(load).toHaveBeenCalledTimes(3);
});

test('only the part fails, and can be tried again', async () => {
  vi.spyOn(console, 'error').mockImplementation(() => {});
  let isThere = false;
  show(() => (isThere ? Promise.resolve({ default: Part }) : missing()));
  expect(await screen.findByText(/could not be loaded/)).toBeVisible();
  expect(screen.getByText('The rest of the page')).toBeVisible();
  isThere = true;
  await userEvent
    .setup({ advanceTimers: vi.advanceTimersByTime })
    .click(screen.getByRole('button', { name: 'Try again' }));
  expect(await screen.findByText('The part')).toBeVisible();
});

describe('a part that can be missing without notice', () => {
  /** Shows a part whose code cannot be loaded before `arrive` is called. */
  async function showMissing() {
    vi.spyOn(console, 'error').mockImplementation(() => {});
    vi.useFakeTimers();
    let isThere = false;
    const load = vi.fn(() => (isThere ? Promise.resolve({ default: Part }) : missing()));
    const Lazy = lazyWithRetry(load, null);
    const parts = (
      <Suspense>
        <Lazy />
      </Suspense>
    );
    const view = render(parts);
    await passSeconds(2);
    expect(load).toHaveBeenCalledTimes(3);
    const arrive = () => {
      isThere = true;
    };
    return { ...view, parts, load, arrive };
  }

  const passSeconds = (count: number) => act(() => vi.advanceTimersByTimeAsync(count * 1_000));

  test('is loaded again when the network returns', async () => {
    const { arrive } = await showMissing();
    arrive();
    act(() => void window.dispatchEvent(new Event('online')));
    await passSeconds(0);
    expect(screen.getByText('The part')).toBeVisible();
  });

  test('is loaded again after growing pauses, until the page is left', async () => {
    const { arrive, load, unmount } = await showMissing();
    await passSeconds(10);
    await passSeconds(2);
    expect(load).toHaveBeenCalledTimes(6);
    await passSeconds(19);
    expect(load).toHaveBeenCalledTimes(6);
    arrive();
    await passSeconds(1);
    expect(screen.getByText('The part')).toBeVisible();
    expect(load).toHaveBeenCalledTimes(7);
    unmount();
    expect(vi.getTimerCount()).toBe(0);
  });

  test('is loaded at once the next time it is needed', async () => {
    const { arrive, parts, unmount } = await showMissing();
    unmount();
    arrive();
    render(parts);
    await passSeconds(0);
    expect(screen.getByText('The part')).toBeVisible();
  });
});

describe('a part that stays missing', () => {
  beforeEach(() => {
    vi.spyOn(console, 'error').mockImplementation(() => {});
    const script = document.createElement('script');
    script.type = 'module';
    // jsdom does not run it.
    script.src = '/assets/index-old.js';
    document.head.append(script);
  });

  const failure = () => screen.findByText(/could not be loaded/);

  test('asks for a reload if the server has another build', async () => {
    serveBuild('/assets/index-new.js');
    show(missing);
    await failure();
    await vi.waitFor(() => expect(useReload.getState()).toEqual({ isOutdated: true, missing: null }));
  });

  test('asks for a reload if the server has this build, until it is loaded', async () => {
    serveBuild('/assets/index-old.js');
    const load = vi.fn(missing);
    show(load);
    await failure();
    await vi.waitFor(() => expect(useReload.getState()).toEqual({ isOutdated: false, missing: load }));
    load.mockResolvedValue({ default: Part } as never);
    await userEvent
      .setup({ advanceTimers: vi.advanceTimersByTime })
      .click(screen.getByRole('button', { name: 'Try again' }));
    expect(await screen.findByText('The part')).toBeVisible();
    expect(useReload.getState().missing).toBeNull();
  });

  test('asks for none if it is loaded while the server is asked', async () => {
    let answer = () => {};
    const asked = new Promise<void>((resolve) => {
      answer = resolve;
    });
    server.use(
      http.get(window.location.origin, async () => {
        await asked;
        return HttpResponse.html('<script type="module" src="/assets/index-old.js"></script>');
      }),
    );
    const load = vi.fn(missing);
    show(load);
    await failure();
    load.mockResolvedValue({ default: Part } as never);
    await userEvent
      .setup({ advanceTimers: vi.advanceTimersByTime })
      .click(screen.getByRole('button', { name: 'Try again' }));
    expect(await screen.findByText('The part')).toBeVisible();
    answer();
    await new Promise((resolve) => setTimeout(resolve, 400));
    expect(useReload.getState()).toEqual({ isOutdated: false, missing: null });
  });

  test('asks for none if it can be missing without notice', async () => {
    const asked = serveBuild('/assets/index-old.js');
    show(missing, null);
    await vi.waitFor(() => expect(asked).toHaveBeenCalled(), 5_000);
    await new Promise((resolve) => setTimeout(resolve, 400));
    expect(useReload.getState()).toEqual({ isOutdated: false, missing: null });
  });

  test('asks for a reload if the server has another build, even if it can be missing without notice', async () => {
    serveBuild('/assets/index-new.js');
    show(missing, null);
    const outdated = { isOutdated: true, missing: null };
    await vi.waitFor(() => expect(useReload.getState()).toEqual(outdated), 5_000);
  });

  test('asks for none while the server cannot be reached', async () => {
    const asked = vi.fn(() => HttpResponse.error());
    server.use(http.get(window.location.origin, asked));
    show(missing);
    await failure();
    await vi.waitFor(() => expect(asked).toHaveBeenCalled());
    await new Promise((resolve) => setTimeout(resolve, 400));
    expect(useReload.getState()).toEqual({ isOutdated: false, missing: null });
  });
});

test('no code is loaded ahead while the browser is offline', () => {
  const load = vi.fn(async () => {});
  const onLine = vi.spyOn(navigator, 'onLine', 'get').mockReturnValue(false);
  prefetch(load)();
  expect(load).not.toHaveBeenCalled();
  onLine.mockReturnValue(true);
  prefetch(load)();
  expect(load).toHaveBeenCalledOnce();
});
