import { expect, test, vi } from 'vitest';
import { clearUserData } from '@/lib/sign-out-cleanup';
import { draftActions, dropRun, useMaskStore } from './mask-store';

const draftOf = (picture: string) => useMaskStore.getState().drafts[picture];

test('a run that comes to nothing changes the draft that it was started with', () => {
  draftActions('a').setRun('earlier', []);
  draftActions('b').setRun('job', []);
  dropRun('job');
  expect(draftOf('a')).toMatchObject({ isSubmitted: true, run: { jobId: 'earlier' } });
  expect(draftOf('b')).toMatchObject({ isSubmitted: false, run: undefined });
});

test('no prompt outlasts a sign-out', () => {
  draftActions('a').setPrompt('remove my brother');
  clearUserData();
  expect(useMaskStore.getState().drafts).toEqual({});
});

test('when the storage of the tab is full, the newest drafts are kept', () => {
  const limit = 1_000;
  const write = Storage.prototype.setItem;
  vi.spyOn(Storage.prototype, 'setItem').mockImplementation(function (this: Storage, key, value) {
    if (value.length > limit) throw new DOMException('full', 'QuotaExceededError');
    write.call(this, key, value);
  });
  for (const picture of ['a', 'b', 'c', 'd']) draftActions(picture).setPrompt(picture.repeat(300));
  window.dispatchEvent(new Event('pagehide'));
  const stored = JSON.parse(sessionStorage.getItem('retouch-magic-fix') ?? 'null');
  expect(Object.keys(stored.state.drafts)).toEqual(['c', 'd']);
});
