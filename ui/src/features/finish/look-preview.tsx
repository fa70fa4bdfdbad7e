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

/** The finished cutout, drawn in the browser. */
export default function LookPreview(props: LookPreviewProps) {
  const { url, originalUrl, alt, width, height, look, strokes } = props;
  const canvas = useRef<HTMLCanvasElement>(null);
  const { background } = look;
  const cutout = usePicture(url);
  const needsOriginal = (background && 'blur' in background) || strokes.some(({ kind }) => kind === 'paint');
  const original = usePicture(needsOriginal ? originalUrl : null);
  const behind = usePicture(background && 'url' in background ? background.url : null);
  const pictures = useMemo(
    () => cutout.picture && { cutout: cutout.picture, original: original.picture, picture: behind.picture },
    [cutout.picture, original.picture, behind.picture],
  );

  useEffect(() => {
    if (!pictures) return;
    // A slider sends many values between two frames.
    const frame = requestAnimationFrame(() => {
      const painted = canvas.current;
      if (!painted) return;
      paintLook(painted, pictures, look, strokes, { x: width, y: height });
      // Only the pixels of the subject tell the shape of a crop.
      painted.style.setProperty('--ratio', String(painted.width / painted.height));
    });
    return () => cancelAnimationFrame(frame);
  }, [pictures, look, strokes, width, height]);

  return (
    <>
      {/* As large as the result, however few pixels are drawn. Not shown before it has a shape. */}
      <div className="absolute inset-0 grid place-items-center [container-type:size]">
        <canvas
          ref={canvas}
          role="img"
          aria-label={alt}
          className="checkerboard w-[min(100cqw,100cqh*var(--ratio,0))]"
        />
      </div>
      <PictureWait pictures={[cutout, original, behind]} />
    </>
  );
}
