import { QueryClient } from '@tanstack/react-query';
import { afterEach, expect, onTestFinished, test, vi } from 'vitest';
import { renewPictures, renewPictureUrl } from './picture-urls';
import { learnServerClock } from './server-clock';

const MINUTE = 60_000;
const urlOf = (expiresAt: number) =>
  `/api/files/result/r-1?expires=${Math.floor(expiresAt / 1000)}&signature=ab`;

afterEach(() => vi.useRealTimers());

type Interval = Parameters<typeof renewPictures.refetchInterval>[0];
const query = (data: unknown) => ({ state: { data } }) as Interval;

test('pictures are requested again before the first of their URLs expires', () => {
  vi.useFakeTimers({ now: Date.UTC(2026, 10, 23) });
  const data = [{ url: urlOf(Date.now() + 90 * MINUTE) }, { url: urlOf(Date.now() + 65 * MINUTE) }];
  expect(renewPictures.refetchInterval(query(data))).toBe(60 * MINUTE);
  expect(renewPictures.refetchOnWindowFocus(query(data))).toBe(false);
  vi.setSystemTime(Date.now() + 3 * 60 * MINUTE);
  expect(renewPictures.refetchOnWindowFocus(query(data))).toBe(true);
  // Not in a tight loop, should the server's clock differ.
  expect(renewPictures.refetchInterval(query(data))).toBeGreaterThanOrEqual(30_000);
});

test('a computer whose clock is ahead does not request its lists all the time', () => {
  vi.useFakeTimers({ now: Date.UTC(2026, 10, 23) });
  onTestFinished(() => learnServerClock(new Date().toUTCString()));
  const serverTime = Date.now() - 180 * MINUTE;
  learnServerClock(new Date(serverTime).toUTCString());
  const data = [{ url: urlOf(serverTime + 65 * MINUTE) }];
  expect(renewPictures.refetchInterval(query(data))).toBe(60 * MINUTE);
  expect(renewPictures.refetchOnWindowFocus(query(data))).toBe(false);
});

test('data without pictures is left alone', () => {
  for (const data of [undefined, [], [{ url: '/api/files/image-1' }]]) {
    expect(renewPictures.refetchInterval(query(data))).toBe(false);
  }
});

test('a refused URL is replaced by a new one, which is requested once', async () => {
  const queryClient = new QueryClient();
  const urls = [urlOf(1_000), urlOf(Date.now() + 90 * MINUTE)];
  const fetchList = vi.fn(async () => [{ url: urls.shift() }]);
  await queryClient.fetchQuery({ queryKey: ['list'], queryFn: fetchList });
  const others = vi.fn(async () => 'no picture');
  await queryClient.fetchQuery({ queryKey: ['other'], queryFn: others });

  const [first, second] = await Promise.all([
    renewPictureUrl(queryClient, urlOf(1_000)),
    renewPictureUrl(queryClient, urlOf(1_000)),
  ]);
  expect([first, second].some((url) => url !== urlOf(1_000))).toBe(true);
  expect(fetchList).toHaveBeenCalledTimes(2);
  expect(others).toHaveBeenCalledOnce();
  expect(await renewPictureUrl(queryClient, '/api/files/result/unknown')).toBeNull();
});

test('several refused URLs of one list request it once', async () => {
  const queryClient = new QueryClient();
  const listUntil = (expires: number) =>
    ['a', 'b', 'c'].map((id) => ({ url: `/api/files/many/${id}?expires=${expires}` }));
  const fetchList = vi.fn(async () => listUntil(2)).mockResolvedValueOnce(listUntil(1));
  await queryClient.fetchQuery({ queryKey: ['list'], queryFn: fetchList });
  const renewed = await Promise.all(listUntil(1).map(({ url }) => renewPictureUrl(queryClient, url)));
  expect(renewed).toEqual(listUntil(2).map(({ url }) => url));
  expect(fetchList).toHaveBeenCalledTimes(2);
});
