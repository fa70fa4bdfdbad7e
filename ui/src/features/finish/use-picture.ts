import { useEffect, useState } from 'react';

/** Loads a picture for drawing; null until it is decoded. A renewed URL of the same picture loads nothing. */
export function usePicture(url: string | null): HTMLImageElement | null {
  const [loaded, setLoaded] = useState<{ path: string; picture: HTMLImageElement } | null>(null);
  const path = url?.startsWith('data:') ? url : (url?.split('?')[0] ?? null);

  // biome-ignore lint/correctness/useExhaustiveDependencies: the path names the picture.
  useEffect(() => {
    if (!url || !path) return;
    let isCurrent = true;
    const picture = new Image();
    // The API may redirect to another origin, and a canvas with pictures from there could not be read.
    picture.crossOrigin = 'anonymous';
    picture.onload = () => isCurrent && setLoaded({ path, picture });
    picture.src = url;
    return () => {
      isCurrent = false;
    };
  }, [path]);

  return loaded?.path === path ? loaded.picture : null;
}
