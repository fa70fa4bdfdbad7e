import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { ApiError } from './api-client';
import { ProviderUnavailable } from './provider-unavailable';
import { withRetries } from './with-retries';

const lost = async () => {
  throw new TypeError('Failed to fetch');
};

beforeEach(() => void vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

test('repeats a call whose connection was lost, although the browser is online', async () => {
  const call = vi.fn(async () => 'sent').mockImplementationOnce(lost);
  const onPause = vi.fn();
  const sent = withRetries(new AbortController().signal, onPause, call);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(await sent).toBe('sent');
  expect(onPause).toHaveBeenCalledExactlyOnceWith('network');
});

test('waits as long as it takes for the identity provider', async () => {
  const call = vi.fn(async () => 'sent');
  const restarts = async () => {
    throw new ProviderUnavailable('Bad Gateway (502)');
  };
  for (let times = 0; times < 6; times += 1) call.mockImplementationOnce(restarts);
  const onPause = vi.fn();
  const sent = withRetries(new AbortController().signal, onPause, call);
  await vi.advanceTimersByTimeAsync(120_000);
  expect(await sent).toBe('sent');
  expect(onPause).toHaveBeenCalledWith('server');
});

test('waits for the network, and not for the identity provider, while the browser is offline', async () => {
  const onLine = vi.spyOn(navigator, 'onLine', 'get').mockReturnValue(false);
  const unreachable = async () => {
    throw new ProviderUnavailable('Failed to fetch');
  };
  const call = vi.fn(async () => 'sent').mockImplementationOnce(unreachable);
  const onPause = vi.fn();
  const sent = withRetries(new AbortController().signal, onPause, call);
  await vi.advanceTimersByTimeAsync(120_000);
  expect(onPause).toHaveBeenCalledExactlyOnceWith('network');
  expect(call).toHaveBeenCalledOnce();
  onLine.mockReturnValue(true);
  window.dispatchEvent(new Event('online'));
  expect(await sent).toBe('sent');
  onLine.mockRestore();
});

test('does not wait for the network after a cancellation', async () => {
  const onLine = vi.spyOn(navigator, 'onLine', 'get').mockReturnValue(false);
  const stop = new AbortController();
  const call = async () => {
    stop.abort(new Error('Stopped'));
    return lost();
  };
  const settled = vi.fn();
  withRetries(stop.signal, () => {}, call).catch(settled);
  await vi.advanceTimersByTimeAsync(0);
  expect(settled).toHaveBeenCalledExactlyOnceWith(new Error('Stopped'));
  onLine.mockRestore();
});

test.each([
  ['did not come in time', new DOMException('Signal timed out', 'TimeoutError')],
  ['was lost by the API itself', new ApiError(500, 'Who knows?', '', null, 'outcome_unknown')],
])('repeats a call whose answer %s', async (_, error) => {
  const call = vi.fn(async () => 'sent').mockRejectedValueOnce(error);
  const sent = withRetries(new AbortController().signal, () => {}, call);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(await sent).toBe('sent');
});

test('gives up on a connection that is lost four times, after growing pauses', async () => {
  const startedAt = Date.now();
  const times: number[] = [];
  const call = () => {
    times.push(Date.now() - startedAt);
    return lost();
  };
  const sent = expect(withRetries(new AbortController().signal, () => {}, call)).rejects.toThrow(TypeError);
  await vi.advanceTimersByTimeAsync(60_000);
  await sent;
  expect(times).toEqual([0, 1_000, 3_000, 7_000]);
});

test('does not repeat a call that was canceled in the meantime', async () => {
  const stop = new AbortController();
  const call = vi.fn(lost);
  const sent = expect(withRetries(stop.signal, () => {}, call)).rejects.toThrow('Stopped');
  await vi.advanceTimersByTimeAsync(500);
  stop.abort(new Error('Stopped'));
  await sent;
  expect(call).toHaveBeenCalledOnce();
});
