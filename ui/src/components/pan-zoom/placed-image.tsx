import type { ImageSize } from '@/lib/image-size';
import type { View } from './view';

/** From this scale on, image pixels show as sharp squares. */
const PIXELATED_FROM = 4;

type PlacedImageProps = {
  src: string;
  size: ImageSize;
  view: View;
  background?: string;
  onLoad?: () => void;
  onError?: () => void;
};

/** An image where its view puts it. The surrounding frame carries the accessible name. */
export function PlacedImage({ size, view: { scale, x, y }, background, ...rest }: PlacedImageProps) {
  return (
    <img
      {...rest}
      alt=""
      draggable={false}
      className="checkerboard pointer-events-none absolute max-w-none"
      style={{
        background,
        left: x,
        top: y,
        width: size.x * scale,
        height: size.y * scale,
        imageRendering: scale >= PIXELATED_FROM ? 'pixelated' : undefined,
      }}
    />
  );
}
