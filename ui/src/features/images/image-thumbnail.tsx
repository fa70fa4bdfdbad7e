import { Picture } from '@/components/picture';
import type { Image } from '@/lib/api-types';

/** Always a square, so that a grid does not shift while it loads. */
export function ImageThumbnail({ image, alt }: { image: Image; alt: string }) {
  return (
    <Picture
      isThumbnail
      src={image.thumbnailUrl}
      alt={alt}
      loading="lazy"
      decoding="async"
      className="checkerboard aspect-square w-full rounded-md object-cover"
    />
  );
}
