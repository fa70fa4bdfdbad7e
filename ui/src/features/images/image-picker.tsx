import { type ReactNode, useState } from 'react';
import { useNavigate } from 'react-router';
import { Button } from '@/components/button';
import { EmptyState } from '@/components/empty-state';
import { LoadFailure } from '@/components/load-failure';
import { PictureBox } from '@/components/picture-box';
import { SkeletonGrid } from '@/components/skeleton-grid';
import type { Image } from '@/lib/api-types';
import { classNames } from '@/lib/class-names';
import { useImages } from './get-images';
import { moveInGrid } from './grid-keys';
import { imageName } from './image-name';
import { ImageThumbnail } from './image-thumbnail';
import { imageTexts } from './texts';
import { UploadPanel } from './upload-panel';

type ImagePickerProps = {
  prefix: string;
  maxDimension: number;
  /** Set by tools that accept several files at once. */
  onFiles?: (files: File[]) => void;
  /** Adds an overlay to an image. */
  badge?: (imageId: string) => ReactNode;
};

/** Selects a stored image or uploads a new one, then navigates to `{prefix}/{imageId}`. */
export default function ImagePicker({ prefix, maxDimension, onFiles, badge }: ImagePickerProps) {
  const [selected, setSelected] = useState<Image | null>(null);
  const navigate = useNavigate();

  return (
    <div className="grid gap-8 lg:grid-cols-2">
      <section aria-label={selected ? 'Selected image' : 'Upload an image'} className="lg:order-2">
        <h2 className="mb-4 text-lg font-semibold">
          {selected ? 'Selected' : onFiles ? 'Upload new images' : 'Upload a new image'}
        </h2>
        {selected ? (
          <div className="grid gap-4">
            <PictureBox width={selected.x} height={selected.y}>
              <img
                src={selected.url}
                alt={imageName(selected)}
                className="checkerboard absolute inset-0 size-full"
              />
            </PictureBox>
            <div className="flex justify-end gap-3">
              <Button variant="secondary" onClick={() => setSelected(null)}>
                Cancel
              </Button>
              <Button onClick={() => void navigate(`${prefix}/${selected.id}`)}>Select</Button>
            </div>
          </div>
        ) : (
          <UploadPanel prefix={prefix} maxDimension={maxDimension} onFiles={onFiles} />
        )}
      </section>
      <section aria-label="Your images">
        <h2 className="mb-4 text-lg font-semibold">Your images</h2>
        <PickerGrid selected={selected} onSelect={setSelected} badge={badge} />
      </section>
    </div>
  );
}

type PickerGridProps = {
  selected: Image | null;
  onSelect: (image: Image) => void;
  badge?: (imageId: string) => ReactNode;
};

function PickerGrid({ selected, onSelect, badge }: PickerGridProps) {
  const images = useImages();
  const grid = 'grid grid-cols-2 gap-3 sm:grid-cols-3';

  if (images.isPending) {
    return <SkeletonGrid className={grid} count={6} label="Loading images" />;
  }
  if (images.isError && !images.data) {
    return (
      <LoadFailure text={imageTexts.listFailed} isTrying={images.isFetching} onTryAgain={images.refetch} />
    );
  }
  if (images.data.length === 0) return <EmptyState icon="image" title={imageTexts.noImages} />;
  return (
    <ul className={grid} onKeyDown={moveInGrid}>
      {images.data.map((image) => (
        <li key={image.id} className="relative">
          <button
            type="button"
            aria-pressed={selected?.id === image.id}
            onClick={() => onSelect(image)}
            className={classNames(
              'block w-full overflow-hidden rounded-md ring-offset-2 ring-offset-canvas',
              selected?.id === image.id ? 'ring-2 ring-accent' : 'hover:ring-2 hover:ring-control',
            )}
          >
            <ImageThumbnail image={image} alt={imageName(image)} />
          </button>
          {badge?.(image.id)}
        </li>
      ))}
    </ul>
  );
}
