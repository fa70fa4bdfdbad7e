import { renderHook } from '@testing-library/react';
import type { ReactNode } from 'react';
import { expect, test } from 'vitest';
import { Session, SessionContext } from '@/lib/session';
import { aConfig } from '@/testing/builders';
import { storeSession } from '@/testing/session';
import { useCallCheck } from './check-call';

function checkOf(imageId: string) {
  const session = new Session(aConfig().identity, { onEnd: () => {}, onForget: () => {} });
  const wrapper = ({ children }: { children: ReactNode }) => (
    <SessionContext value={session}>{children}</SessionContext>
  );
  return renderHook(() => useCallCheck(imageId), { wrapper }).result.current;
}

test('a call needs a token', () => {
  expect(checkOf('image-1')).toThrow('Authentication token is missing.');
});

test('a call needs an image', () => {
  storeSession(aConfig().identity);
  expect(checkOf('')).toThrow('Image ID is missing.');
  expect(checkOf('image-1')).not.toThrow();
});
