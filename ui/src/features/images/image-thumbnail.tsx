import type { Image } from '@/lib/api-types';

/** A square of fixed shape, whatever the picture's own is: a grid that never moves while it loads. */
export function ImageThumbnail({ image, alt }: { image: Image; alt: string }) {
  return (
    <img
      src={image.thumbnailUrl}
      alt={alt}
      loading="lazy"
      decoding="async"
      className="checkerboard aspect-square w-full rounded-md object-cover"
    />
  );
}
