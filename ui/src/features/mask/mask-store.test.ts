import { expect, test } from 'vitest';
import { clearUserData } from '@/lib/sign-out-cleanup';
import { draftActions, dropRun, useMaskStore } from './mask-store';

const draftOf = (picture: string) => useMaskStore.getState().drafts[picture];

test('a run that comes to nothing changes the draft that it was started with', () => {
  draftActions('a').setRun('earlier', 0);
  draftActions('b').setRun('job', 0);
  dropRun('job');
  expect(draftOf('a')).toMatchObject({ isSubmitted: true, run: { jobId: 'earlier' } });
  expect(draftOf('b')).toMatchObject({ isSubmitted: false, run: undefined });
});

test('no prompt outlasts a sign-out', () => {
  draftActions('a').setPrompt('remove my brother');
  clearUserData();
  expect(useMaskStore.getState().drafts).toEqual({});
});
