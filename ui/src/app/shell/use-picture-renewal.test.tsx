import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { fireEvent, render } from '@testing-library/react';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { usePictureRenewal } from './use-picture-renewal';

const URL = '/api/files/images/1?expires=9999999999&signature=s';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function Page() {
  usePictureRenewal();
  return <img src={URL} alt="" />;
}

/** Renders a picture whose request fails, and returns it with the addresses that it is asked to load again. */
async function renderBroken() {
  const client = new QueryClient({ defaultOptions: { queries: { queryFn: () => ({ url: URL }) } } });
  client.setQueryData(['image'], { url: URL });
  const { container } = render(
    <QueryClientProvider client={client}>
      <Page />
    </QueryClientProvider>,
  );
  const picture = container.querySelector('img') as HTMLImageElement;
  const loads = vi.spyOn(picture, 'src', 'set').mockReturnValue();
  const fail = async () => {
    fireEvent.error(picture);
    await vi.advanceTimersByTimeAsync(0);
  };
  await fail();
  return { loads, fail };
}

test('a picture whose request failed is loaded again, later each time, and not forever', async () => {
  const { loads, fail } = await renderBroken();
  await vi.advanceTimersByTimeAsync(1_900);
  expect(loads).not.toHaveBeenCalled();
  await vi.advanceTimersByTimeAsync(200);
  expect(loads).toHaveBeenCalledExactlyOnceWith(expect.stringContaining(URL));
  await fail();
  await vi.advanceTimersByTimeAsync(5_000);
  expect(loads).toHaveBeenCalledTimes(1);
  for (let attempt = 0; attempt < 8; attempt += 1) {
    await vi.advanceTimersByTimeAsync(200_000);
    await fail();
  }
  expect(loads).toHaveBeenCalledTimes(4);
});

test('it is loaded again at once when the browser is online again', async () => {
  const { loads } = await renderBroken();
  fireEvent.online(window);
  await vi.advanceTimersByTimeAsync(0);
  expect(loads).toHaveBeenCalledTimes(1);
});

test('without a network, it waits for as long as that takes', async () => {
  const onLine = vi.spyOn(navigator, 'onLine', 'get').mockReturnValue(false);
  const { loads, fail } = await renderBroken();
  for (let attempt = 0; attempt < 8; attempt += 1) {
    await vi.advanceTimersByTimeAsync(600_000);
    await fail();
  }
  loads.mockClear();
  onLine.mockReturnValue(true);
  fireEvent.online(window);
  await vi.advanceTimersByTimeAsync(0);
  expect(loads).toHaveBeenCalledTimes(1);
});
