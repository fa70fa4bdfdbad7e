import { useEffect } from 'react';
import type { Background } from './look';

/** Revokes the object URL of a background picture when another background follows, or the page is left. */
export function useBackgroundUrl(background: Background | null) {
  const url = background && 'url' in background ? background.url : null;
  useEffect(() => () => void (url && URL.revokeObjectURL(url)), [url]);
}
