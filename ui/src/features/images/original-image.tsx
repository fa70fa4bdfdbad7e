import type { Image } from '@/lib/api-types';
import { formatBytes } from '@/lib/format';
import { imageName } from './image-name';

/** The uploaded image. Its size is known in advance, so nothing shifts when it loads. */
export function OriginalImage({ image }: { image: Image }) {
  return (
    <figure>
      <div className="grid min-h-40 place-items-center overflow-hidden rounded-lg border border-line bg-sunken">
        <img
          src={image.url}
          alt={imageName(image)}
          width={image.x}
          height={image.y}
          // The size attributes set the aspect ratio once the width is fixed.
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
