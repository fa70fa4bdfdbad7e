import { HttpResponse, http } from 'msw';
import { afterEach, expect, test, vi } from 'vitest';
import { server } from '@/testing/server';
import { api } from './api-client';
import { learnServerClock, serverNow } from './server-clock';

const HOUR = 3_600_000;

afterEach(() => {
  vi.useRealTimers();
  learnServerClock(new Date().toUTCString());
});

test.each([-3, 3])('every response tells that the server is %i hours away', async (hours) => {
  const date = new Date(Date.now() + hours * HOUR).toUTCString();
  server.use(http.get('*/api/images', () => HttpResponse.json({ images: [] }, { headers: { Date: date } })));
  await api.GET('/api/images');
  expect(Math.abs(serverNow() - Date.now() - hours * HOUR)).toBeLessThan(10_000);
});

test('a slow network is no difference, and neither is a response without a time', () => {
  vi.useFakeTimers({ now: Date.UTC(2026, 10, 23) });
  learnServerClock(new Date(Date.now() - 5_000).toUTCString());
  expect(serverNow()).toBe(Date.now());
  learnServerClock(new Date(Date.now() - HOUR).toUTCString());
  for (const date of [null, 'yesterday']) learnServerClock(date);
  expect(serverNow()).toBe(Date.now() - HOUR);
});
