import type { ReactNode } from 'react';
import type { Image } from '@/lib/api-types';
import { formatBytes } from '@/lib/format';
import { t } from '@/lib/translate';
import { imageName } from './image-name';

type OriginalImageProps = { image: Image; children?: ReactNode };

/** The uploaded image. Its size is known in advance, so nothing shifts when it loads. `children` follow its facts. */
export function OriginalImage({ image, children }: OriginalImageProps) {
  return (
    <figure>
      <div className="grid min-h-40 place-items-center overflow-hidden rounded-lg border border-line bg-sunken">
        <img
          src={image.previewUrl ?? image.url}
          alt={imageName(image)}
          width={image.x}
          height={image.y}
          // The size attributes set the aspect ratio once the width is fixed.
          className="checkerboard h-auto w-full"
          style={{
            maxWidth: `min(${image.x}px, calc(var(--original-height, 60dvh) * ${image.x / image.y}))`,
          }}
        />
      </div>
      <figcaption className="mt-2 grid gap-1 text-sm text-soft">
        {image.name && <span className="font-medium wrap-anywhere text-ink">{image.name}</span>}
        <span>{`${t('{x} × {y} px', { x: image.x, y: image.y })} · ${formatBytes(image.sizeBytes)}`}</span>
        {children}
      </figcaption>
    </figure>
  );
}
