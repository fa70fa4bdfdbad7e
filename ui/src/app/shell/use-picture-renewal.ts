import { useQueryClient } from '@tanstack/react-query';
import { useEffect } from 'react';
import { pause } from '@/lib/pause';
import { renewPictureUrl } from '@/lib/picture-urls';

/** The waits before a picture whose URL is still valid is loaded again, as after a failure of the network. */
const RETRY_AFTER_MS = [2_000, 10_000, 30_000, 120_000];

/**
 * Looks after pictures that cannot be loaded. Asks the API for a new URL, because the old one may have expired, and
 * otherwise loads the picture again a little later, or as soon as the browser is online.
 */
export function usePictureRenewal() {
  const queryClient = useQueryClient();
  useEffect(() => {
    const stop = new AbortController();
    const { signal } = stop;
    const failures = new WeakMap<HTMLImageElement, number>();
    const renew = async ({ target }: Event) => {
      if (!(target instanceof HTMLImageElement)) return;
      const { src } = target;
      const { origin, pathname } = new URL(src, window.location.origin);
      if (origin !== window.location.origin || !pathname.startsWith('/api/files/')) return;
      const earlier = failures.get(target) ?? 0;
      failures.set(target, earlier + 1);
      await renewPictureUrl(queryClient, src).catch(() => {});
      const wait = RETRY_AFTER_MS[earlier];
      if (!wait) return;
      await pause(wait, signal);
      // With a new URL, the page has loaded it. Setting the same one starts another request.
      if (!signal.aborted && target.isConnected && target.src === src) target.src = src;
    };
    // Errors of pictures do not bubble, but they are captured.
    window.addEventListener('error', renew, { capture: true, signal });
    return () => stop.abort();
  }, [queryClient]);
}
