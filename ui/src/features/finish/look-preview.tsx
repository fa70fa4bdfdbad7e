import { useEffect, useRef } from 'react';
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
  const picture = usePicture(background && 'url' in background ? background.url : null);

  useEffect(() => {
    if (!canvas.current || !cutOut) return;
    // A slider sends many values between two frames.
    const frame = requestAnimationFrame(() => {
      if (canvas.current)
        paintLook(canvas.current, { cutOut, original, picture }, look, strokes, { x: width, y: height });
    });
    return () => cancelAnimationFrame(frame);
  }, [cutOut, original, picture, look, strokes, width, height]);

  return (
    <canvas
      ref={canvas}
      role="img"
      aria-label={alt}
      className="checkerboard absolute inset-0 m-auto max-h-full max-w-full"
    />
  );
}
