import { renderHook } from '@testing-library/react';
import type { ReactNode } from 'react';
import { expect, test } from 'vitest';
import { Session, SessionContext } from '@/lib/session';
import { aConfig } from '@/testing/builders';
import { storeSession } from '@/testing/session';
import { usePreconditionCheck } from './check-preconditions';

function checkFor(imageId: string) {
  const session = new Session(aConfig().identity, {
    onExpired: () => {},
    onSignedOut: () => {},
    onUserChanged: () => {},
  });
  const wrapper = ({ children }: { children: ReactNode }) => (
    <SessionContext value={session}>{children}</SessionContext>
  );
  return renderHook(() => usePreconditionCheck(imageId), { wrapper }).result.current;
}

test('a run needs a token', async () => {
  await expect(checkFor('image-1')()).rejects.toThrow('Authentication token is missing.');
});

test('a run needs an image', async () => {
  storeSession(aConfig().identity);
  await expect(checkFor('')()).rejects.toThrow('Image ID is missing.');
  await checkFor('image-1')();
});
