import { useContext } from 'react';
import { UserError } from '@/lib/failure-text';
import { SessionContext } from '@/lib/session';

/** Returns a check to call on the click: the token may have expired since the last render. */
export function usePreconditionCheck(imageId: string) {
  const session = useContext(SessionContext);
  return () => {
    const user = session?.state.getState().user;
    const isExpired = user?.expires_at !== undefined && user.expires_at * 1000 <= Date.now();
    if (!user?.access_token || isExpired) throw new UserError('Authentication token is missing.');
    if (!imageId) throw new UserError('Image ID is missing.');
  };
}
