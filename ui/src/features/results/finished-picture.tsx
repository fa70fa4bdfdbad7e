import { Suspense } from 'react';
import { lazyWithRetry } from '@/components/lazy-with-retry';
import { isFlat } from '@/features/finish/look';
import type { Finish } from '@/features/finish/use-finish';
import type { Result } from '@/lib/api-types';

const LookPreview = lazyWithRetry(() => import('@/features/finish/look-preview'));
const TouchUpSurface = lazyWithRetry(() => import('@/features/finish/touch-up-surface'));

type Original = { url: string; previewUrl?: string | null };

/** The brush over a cut-out, while it is being touched up. */
export function touchUpOf(finish: Finish, result: Result, original: Original) {
  if (!finish.isTouchingUp) return undefined;
  return (
    <Suspense>
      <TouchUpSurface
        key={result.imageId}
        finish={finish}
        touchUp={finish.touchUpOf(result.imageId)}
        url={result.url}
        originalUrl={original.url}
        size={{ x: result.width, y: result.height }}
      />
    </Suspense>
  );
}

/** The finished cut-out; undefined if the picture itself and a CSS background show it. */
export function finishedPictureOf(finish: Finish, result: Result, original: Original, alt: string) {
  const { strokes } = finish.touchUpOf(result.imageId);
  if (isFlat(finish.look) && strokes.length === 0) return undefined;
  return (
    <Suspense>
      <LookPreview
        url={result.previewUrl ?? result.url}
        originalUrl={original.previewUrl ?? original.url}
        alt={alt}
        width={result.width}
        height={result.height}
        look={finish.look}
        strokes={strokes}
      />
    </Suspense>
  );
}
