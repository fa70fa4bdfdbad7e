import type { Image } from '@/lib/api-types';
import { formatBytes } from '@/lib/format';
import { imageName } from './image-name';

/** The uploaded picture in a box of its own shape: width and height are known, so nothing jumps. */
export function OriginalImage({ image }: { image: Image }) {
  return (
    <figure>
      <div className="grid place-items-center overflow-hidden rounded-lg border border-line bg-sunken">
        <img
          src={image.url}
          alt={imageName(image)}
          width={image.x}
          height={image.y}
          className="checkerboard h-auto max-h-[60dvh] w-auto max-w-full"
        />
      </div>
      <figcaption className="mt-2 text-sm text-soft tabular-nums">
        {image.x} × {image.y} px · {formatBytes(image.sizeBytes)}
      </figcaption>
    </figure>
  );
}
