import type { Image } from '@/lib/api-types';
import { formatBytes } from '@/lib/format';
import { imageName } from './image-name';

/** The uploaded picture in a box of its own shape: width and height are known, so nothing jumps. */
export function OriginalImage({ image }: { image: Image }) {
  return (
    <figure>
      <div className="grid min-h-40 place-items-center overflow-hidden rounded-lg border border-line bg-sunken">
        <img
          src={image.url}
          alt={imageName(image)}
          width={image.x}
          height={image.y}
          // Its attributes give it its shape, but only where one side is settled: the width, up to its own.
          className="checkerboard h-auto w-full"
          style={{ maxWidth: `min(${image.x}px, calc(60dvh * ${image.x / image.y}))` }}
        />
      </div>
      <figcaption className="mt-2 text-sm text-soft tabular-nums">
        {image.x} × {image.y} px · {formatBytes(image.sizeBytes)}
      </figcaption>
    </figure>
  );
}
