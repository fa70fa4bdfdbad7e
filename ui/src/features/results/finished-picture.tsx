import { type ReactNode, Suspense } from 'react';
import { lazyWithRetry } from '@/components/lazy-with-retry';
import { isFlat } from '@/features/finish/look';
import type { Finish } from '@/features/finish/use-finish';
import type { Result } from '@/lib/api-types';
import type { EnlargedPicture } from './rendered-picture';

const LookPreview = lazyWithRetry(() => import('@/features/finish/look-preview'));
const RenderedPicture = lazyWithRetry(() => import('./rendered-picture'));
const TouchUpSurface = lazyWithRetry(() => import('@/features/finish/touch-up-surface'));

type Original = { url: string; previewUrl?: string | null };

/** The brush over a cutout, while it is being touched up. */
export function touchUpOf(finish: Finish, result: Result, original: Original) {
  if (!finish.isTouchingUp) return undefined;
  return (
    <Suspense>
      <TouchUpSurface
        key={result.imageId}
        finish={finish}
        touchUp={finish.touchUpOf(result.imageId)}
        result={result}
        original={original}
        size={{ x: result.width, y: result.height }}
      />
    </Suspense>
  );
}

export type Finished = {
  /** Drawn in the browser: close to the file. */
  picture: ReactNode;
  /** Shows the file itself, as soon as the API has rendered it. */
  enlarge: (show: (picture: EnlargedPicture) => ReactNode) => ReactNode;
  /** Whether its places no longer lie where they are in the original. */
  isCropped: boolean;
};

/** The finished cutout; undefined if the picture itself and a CSS background show it. */
export function finishedPictureOf(
  finish: Finish,
  result: Result,
  original: Original,
  alt: string,
  onFailed: () => void,
): Finished | undefined {
  const { look } = finish;
  const { strokes } = finish.touchUpOf(result.imageId);
  if (isFlat(look) && strokes.length === 0) return undefined;
  return {
    picture: (
      <Suspense>
        <LookPreview
          key={result.imageId}
          url={result.previewUrl ?? result.url}
          originalUrl={original.previewUrl ?? original.url}
          alt={alt}
          width={result.width}
          height={result.height}
          look={look}
          strokes={strokes}
        />
      </Suspense>
    ),
    enlarge: (show) => (
      <Suspense>
        <RenderedPicture
          key={result.imageId}
          result={result}
          look={look}
          strokes={strokes}
          onFailed={onFailed}
        >
          {show}
        </RenderedPicture>
      </Suspense>
    ),
    isCropped: look.crop !== null,
  };
}
