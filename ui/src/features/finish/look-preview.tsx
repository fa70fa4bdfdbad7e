import { useEffect, useMemo, useRef } from 'react';
import { PictureWait } from '@/components/picture-wait';
import type { Stroke } from '@/features/mask/marks';
import type { Look } from './look';
import { paintLook } from './paint-look';
import { usePicture } from './use-picture';

type LookPreviewProps = {
  url: string;
  originalUrl: string;
  alt: string;
  /** Of the result, in pixels. */
  width: number;
  height: number;
  look: Look;
  strokes: Stroke[];
};

/** The finished cut-out, drawn in the browser. */
export default function LookPreview(props: LookPreviewProps) {
  const { url, originalUrl, alt, width, height, look, strokes } = props;
  const canvas = useRef<HTMLCanvasElement>(null);
  const { background } = look;
  const cutOut = usePicture(url);
  const needsOriginal = (background && 'blur' in background) || strokes.some(({ kind }) => kind === 'paint');
  const original = usePicture(needsOriginal ? originalUrl : null);
  const behind = usePicture(background && 'url' in background ? background.url : null);
  const pictures = useMemo(
    () => cutOut.picture && { cutOut: cutOut.picture, original: original.picture, picture: behind.picture },
    [cutOut.picture, original.picture, behind.picture],
  );

  useEffect(() => {
    if (!pictures) return;
    // A slider sends many values between two frames.
    const frame = requestAnimationFrame(() => {
      if (canvas.current) paintLook(canvas.current, pictures, look, strokes, { x: width, y: height });
    });
    return () => cancelAnimationFrame(frame);
  }, [pictures, look, strokes, width, height]);

  return (
    <>
      <canvas
        ref={canvas}
        role="img"
        aria-label={alt}
        className="checkerboard absolute inset-0 m-auto max-h-full max-w-full"
      />
      <PictureWait pictures={[cutOut, original, behind]} />
    </>
  );
}
