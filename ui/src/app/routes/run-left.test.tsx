import { act, screen, waitFor, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { HttpResponse, http } from 'msw';
import { describe, expect, test, vi } from 'vitest';
import { anImage, aResult } from '@/testing/builders';
import { MockApi } from '@/testing/mock-api';
import { renderApp } from '@/testing/render-app';
import { server } from '@/testing/server';

const path = '/remove-background/image-1';

const withImage = (change: Partial<MockApi> = {}) =>
  Object.assign(new MockApi(), { images: [anImage()], ...change });

async function runButton() {
  const button = await screen.findByRole('button', { name: 'Remove Bg AI' });
  await waitFor(() => expect(button).toBeEnabled());
  return button;
}

/** Holds runs back until they are released, and lets `answer` answer them; by default, the mock API does. */
function holdRuns(answer = (): Response | undefined => undefined) {
  const keys: (string | null)[] = [];
  let release = () => {};
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  server.use(
    http.post('*/api/rmbg-images/remove-bg-ai', async ({ request }) => {
      keys.push(request.headers.get('Idempotency-Key'));
      await held;
      return answer();
    }),
  );
  return { keys, release };
}

describe('a run whose page is left while it is being sent', () => {
  /** Starts a run, visits another page, and comes back. */
  async function startAndComeBack(api: MockApi, answer?: () => Response) {
    const { router } = renderApp(path, { api, signedIn: true });
    const runs = holdRuns(answer);
    await userEvent.click(await runButton());
    await act(() => router.navigate('/terms'));
    await screen.findByRole('heading', { name: 'Terms of Service' });
    await act(() => router.navigate(path));
    await screen.findByText('No images to show');
    return { ...runs, button: screen.getByRole('button', { name: 'Remove Bg AI' }) };
  }

  test('is not started again', async () => {
    const api = withImage();
    const { keys, release, button } = await startAndComeBack(api);
    await userEvent.click(button);
    release();
    expect(await screen.findByRole('img', { name: 'Result 1' })).toBeVisible();
    expect(keys).toHaveLength(1);
    expect(api.jobs).toHaveLength(1);
  });

  test('says on the page why it was refused', async () => {
    const { release, button } = await startAndComeBack(withImage(), () =>
      HttpResponse.json({ detail: 'Slow down' }, { status: 429 }),
    );
    release();
    expect(await screen.findByText('Slow down')).toBeVisible();
    expect(button).toBeEnabled();
  });
});

test('a run adds nothing to a list of results that could not be loaded, but loads it', async () => {
  const earlier = ['one', 'two'].map((imageId) => aResult({ imageId }));
  const api = Object.assign(new MockApi(), { images: [anImage()], results: earlier });
  renderApp(path, { api, signedIn: true });
  let isAway = true;
  server.use(
    http.get('*/api/rmbg-images/:id', () => (isAway ? new HttpResponse(null, { status: 500 }) : undefined)),
  );
  await screen.findByRole('button', { name: 'Try again' });
  isAway = false;
  await userEvent.click(await runButton());
  const results = await screen.findByRole('list', { name: 'All results' });
  await waitFor(() => expect(within(results).getAllByRole('img')).toHaveLength(3));
});

test('a run whose answer is lost has the same key after a reload', async () => {
  const api = withImage();
  const page = renderApp(path, { api, signedIn: true });
  const { keys, release } = holdRuns(HttpResponse.error);
  release();
  await userEvent.click(await runButton());
  expect(await screen.findByText('The connection was lost. Please try again.')).toBeVisible();
  page.unmount();

  server.use(...api.handlers());
  // From here on, another page loads; the next test would otherwise have parts of both.
  vi.resetModules();
  const reloaded = await import('@/testing/render-app');
  reloaded.renderApp(path, { api, signedIn: true });
  await userEvent.click(await runButton());
  await screen.findByRole('img', { name: 'Result 1' });
  expect(api.idempotencyKeys).toEqual(keys);
});
