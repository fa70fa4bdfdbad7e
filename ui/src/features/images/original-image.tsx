import type { ReactNode } from 'react';
import { Picture } from '@/components/picture';
import type { Image } from '@/lib/api-types';
import { formatBytes } from '@/lib/format';
import { t } from '@/lib/translate';
import { imageName } from './image-name';

type OriginalImageProps = {
  image: Image;
  /** As in `Picture`. */
  onFailed?: (hasFailed: boolean) => void;
  /** Follows its facts. */
  children?: ReactNode;
};

/** The uploaded image. Its size is known in advance, so nothing shifts when it loads. */
export function OriginalImage({ image, onFailed, children }: OriginalImageProps) {
  return (
    <figure>
      <div className="relative grid min-h-40 place-items-center overflow-hidden rounded-lg border border-line bg-sunken">
        <Picture
          src={image.previewUrl ?? image.url}
          alt={imageName(image)}
          onFailed={onFailed}
          className="checkerboard w-full"
          style={{
            aspectRatio: `${image.x} / ${image.y}`,
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
