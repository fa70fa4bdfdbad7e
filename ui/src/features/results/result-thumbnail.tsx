import { Picture } from '@/components/picture';
import type { Result } from '@/lib/api-types';
import { classNames } from '@/lib/class-names';

/** Fits the square and keeps its aspect ratio, so that the empty sides do not look transparent. */
export function ResultThumbnail({ result, alt }: { result: Result; alt: string }) {
  const { thumbnailUrl, width, height } = result;
  return (
    <Picture
      isThumbnail
      src={thumbnailUrl}
      alt={alt}
      loading="lazy"
      style={{ aspectRatio: `${width} / ${height}` }}
      className={classNames('checkerboard min-h-0 min-w-0', width >= height ? 'w-full' : 'h-full')}
    />
  );
}
