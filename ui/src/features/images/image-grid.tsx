import { ButtonLink } from '@/components/button-link';
import { EmptyState } from '@/components/empty-state';
import { Notice } from '@/components/notice';
import { SkeletonGrid } from '@/components/skeleton-grid';
import { paths } from '@/lib/paths';
import { useImages } from './get-images';
import { imageName } from './image-name';
import { ImageThumbnail } from './image-thumbnail';
import { imageTexts } from './texts';

const grid = 'grid grid-cols-2 gap-4 sm:grid-cols-3 md:grid-cols-4 lg:grid-cols-6 xl:grid-cols-8';

export function ImageGrid() {
  const images = useImages();

  if (images.isPending) {
    return <SkeletonGrid className={grid} count={8} label="Loading images" hasButton />;
  }
  if (images.isError && !images.data) return <Notice tone="error">{imageTexts.listFailed}</Notice>;
  if (images.data.length === 0) {
    return (
      <EmptyState icon="image" title={imageTexts.noImages}>
        Upload your first one above.
      </EmptyState>
    );
  }
  return (
    <ul className={grid}>
      {images.data.map((image) => (
        <li key={image.id} className="grid gap-2">
          <ImageThumbnail image={image} alt={imageName(image)} />
          <ButtonLink
            to={paths.image(image.id)}
            look="secondary"
            size="sm"
            aria-label={`Select ${imageName(image)}`}
          >
            Select
          </ButtonLink>
        </li>
      ))}
    </ul>
  );
}
