import { useState } from 'react';
import { t } from '@/lib/translate';
import { connectionLost } from './api-client';
import { loadWithRetry, prefetch } from './load-with-retry';
import { notifyError } from './notify';

/** Loads code on a click, such as a menu's code, and then opens it. Reports a failure; another click tries again. */
export function useOpenWhenLoaded(load: () => Promise<unknown>) {
  const [isLoaded, setLoaded] = useState(false);
  return {
    isLoaded,
    /** Loads ahead of the click. */
    prefetch: prefetch(load),
    open: async (onLoaded: () => void = () => {}) => {
      try {
        await loadWithRetry(load);
        setLoaded(true);
        onLoaded();
      } catch {
        notifyError(t(connectionLost));
      }
    },
  };
}
