import { renderHook } from '@testing-library/react';
import type { ReactNode } from 'react';
import { expect, test } from 'vitest';
import { Session, SessionContext } from '@/lib/session';
import { aConfig } from '@/testing/builders';
import { storeSession } from '@/testing/session';
import { usePreconditionCheck } from './check-preconditions';

function checkFor(imageId: string) {
  const session = new Session(aConfig().identity, { onExpired: () => {}, onSignedOut: () => {} });
  const wrapper = ({ children }: { children: ReactNode }) => (
    <SessionContext value={session}>{children}</SessionContext>
  );
  return renderHook(() => usePreconditionCheck(imageId), { wrapper }).result.current;
}

test('a run needs a token', () => {
  expect(checkFor('image-1')).toThrow('Authentication token is missing.');
});

test('a run needs an image', () => {
  storeSession(aConfig().identity);
  expect(checkFor('')).toThrow('Image ID is missing.');
  expect(checkFor('image-1')).not.toThrow();
});
