import { beforeEach, expect, test, vi } from 'vitest';
import { forgetExpired, keepPicture, takePicture } from './kept-picture';
import { clearUserData } from './sign-out-cleanup';

const photo = new File(['bytes'], 'holiday.png', { type: 'image/png' });

/** What jsdom lacks: a database with one store. */
function aDatabase() {
  const rows = new Map<string, unknown>();
  const answer = (result: unknown) => {
    const request = { result, onsuccess: () => {} };
    setTimeout(() => request.onsuccess());
    return request;
  };
  const store = {
    put: (value: unknown, key: string) => answer(rows.set(key, value)),
    getAllKeys: () => answer([...rows.keys()]),
    get: (key: string) => answer(rows.get(key)),
    delete: (key: string) => answer(rows.delete(key)),
  };
  const transaction = () => ({ objectStore: () => store });
  return {
    open: () => answer({ transaction, close: () => {} }),
    deleteDatabase: () => rows.clear(),
  };
}

beforeEach(() => {
  vi.stubGlobal('indexedDB', aDatabase());
});

test('a kept picture is taken once', async () => {
  await keepPicture(photo);
  expect(await takePicture()).toBe(photo);
  expect(await takePicture()).toBeNull();
});

test('a kept picture expires after an hour', async () => {
  await keepPicture(photo);
  await forgetExpired();
  const now = Date.now();
  const clock = vi.spyOn(Date, 'now').mockReturnValue(now + 3_601_000);
  await forgetExpired();
  clock.mockRestore();
  expect(await takePicture()).toBeNull();

  await keepPicture(photo);
  await forgetExpired();
  expect(await takePicture()).toBe(photo);
});

test('a kept picture goes with the sign-out', async () => {
  await keepPicture(photo);
  clearUserData();
  expect(await takePicture()).toBeNull();
});
