import { useContext } from 'react';
import { SessionContext } from '@/lib/session';
import { NotReady } from './reason-of';

/** What every run needs; asked at the click, because a token that was good at the last render may be over. */
export function useCallCheck(imageId: string) {
  const session = useContext(SessionContext);
  return () => {
    const user = session?.state.getState().user;
    const isOver = user?.expires_at !== undefined && user.expires_at * 1000 <= Date.now();
    if (!user?.access_token || isOver) throw new NotReady('Authentication token is missing.');
    if (!imageId) throw new NotReady('Image ID is missing.');
  };
}
