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
    const failures = new WeakMap<HTMLImageElement, [src: string, count: number]>();
    const renew = async ({ target }: Event) => {
      if (!(target instanceof HTMLImageElement)) return;
      const { src } = target;
      if (!src.startsWith(`${window.location.origin}/api/files/`)) return;
      const [failed, count] = failures.get(target) ?? [src, 0];
      const earlier = failed === src ? count : 0;
      // Without a network, a failure says nothing about the picture.
      const { onLine } = navigator;
      failures.set(target, [src, earlier + (onLine ? 1 : 0)]);
      await renewPictureUrl(queryClient, src).catch(() => {});
      const wait = RETRY_AFTER_MS.at(onLine ? earlier : -1);
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
