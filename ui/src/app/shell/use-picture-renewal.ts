import { useQueryClient } from '@tanstack/react-query';
import { useEffect } from 'react';
import { renewPictureUrl } from '@/lib/picture-urls';

/** Asks the API again for a picture that cannot be loaded: its URL may have expired. */
export function usePictureRenewal() {
  const queryClient = useQueryClient();
  useEffect(() => {
    const renew = ({ target }: Event) => {
      if (!(target instanceof HTMLImageElement)) return;
      const { origin, pathname } = new URL(target.src, window.location.origin);
      if (origin !== window.location.origin || !pathname.startsWith('/api/files/')) return;
      void renewPictureUrl(queryClient, target.src);
    };
    // Errors of pictures do not bubble, but they are captured.
    window.addEventListener('error', renew, true);
    return () => window.removeEventListener('error', renew, true);
  }, [queryClient]);
}
