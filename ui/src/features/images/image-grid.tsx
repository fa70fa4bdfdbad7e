import type { ReactNode } from 'react';
import { ButtonLink } from '@/components/button-link';
import { EmptyState } from '@/components/empty-state';
import { LoadFailure } from '@/components/load-failure';
import { SkeletonGrid } from '@/components/skeleton-grid';
import { paths } from '@/lib/paths';
import { useImages } from './get-images';
import { moveInGrid } from './grid-keys';
import { imageName } from './image-name';
import { ImageThumbnail } from './image-thumbnail';
import { imageTexts } from './texts';

const grid = 'grid grid-cols-2 gap-4 sm:grid-cols-3 md:grid-cols-4 lg:grid-cols-6 xl:grid-cols-8';

/** All stored images with links to their pages. `badge` adds an overlay to an image. */
export function ImageGrid({ badge }: { badge?: (imageId: string) => ReactNode }) {
  const images = useImages();

  if (images.isPending) {
    return <SkeletonGrid className={grid} count={8} label="Loading images" hasButton />;
  }
  if (images.isError && !images.data) {
    return (
      <LoadFailure text={imageTexts.listFailed} isTrying={images.isFetching} onTryAgain={images.refetch} />
    );
  }
  if (images.data.length === 0) {
    return (
      <EmptyState icon="image" title={imageTexts.noImages}>
        Upload your first one above.
      </EmptyState>
    );
  }
  return (
    <ul aria-label="Your images" className={grid} onKeyDown={moveInGrid}>
      {images.data.map((image) => (
        <li key={image.id} className="group relative grid content-start gap-2">
          <div className="relative">
            <ImageThumbnail image={image} alt={imageName(image)} />
            {badge?.(image.id)}
          </div>
          <ButtonLink
            to={paths.image(image.id)}
            variant="secondary"
            size="sm"
            // The link's hit area includes the picture.
            className="after:absolute after:inset-0 after:rounded-md group-hover:bg-sunken"
            aria-label={`Select ${imageName(image)}`}
          >
            Select
          </ButtonLink>
        </li>
      ))}
    </ul>
  );
}
