import { type ReactNode, useEffect, useId, useRef, useState } from 'react';
import { useNavigate } from 'react-router';
import { Button } from '@/components/button';
import { EmptyState } from '@/components/empty-state';
import { LoadFailure } from '@/components/load-failure';
import { Picture } from '@/components/picture';
import { PictureBox } from '@/components/picture-box';
import { SkeletonGrid } from '@/components/skeleton-grid';
import { useIncomingFiles } from '@/components/use-incoming-files';
import type { Image } from '@/lib/api-types';
import { classNames } from '@/lib/class-names';
import { isTooBig, tooBigText } from '@/lib/max-dimension';
import { t } from '@/lib/translate';
import { useImages } from './get-images';
import { moveInGrid } from './grid-keys';
import { ImageCount } from './image-count';
import { allImages } from './image-filter';
import { imageName, shortImageName } from './image-name';
import { ImageSearch } from './image-search';
import { ImageThumbnail } from './image-thumbnail';
import { MoreImages } from './more-images';
import { NoHits } from './no-hits';
import { imageTexts } from './texts';
import { UploadPanel } from './upload-panel';

/** Fewer images are quicker to look at. */
const MIN_FOR_SEARCH = 9;

type ImagePickerProps = {
  prefix: string;
  maxDimension: number;
  /** Set by tools that process several files at once. */
  onFiles?: (files: File[]) => void;
  /** Adds an overlay to an image. */
  badge?: (imageId: string) => ReactNode;
};

/** Selects a stored image or uploads a new one, then navigates to `{prefix}/{imageId}`. */
export default function ImagePicker({ prefix, maxDimension, onFiles, badge }: ImagePickerProps) {
  const [selected, setSelected] = useState<Image | null>(null);
  /** Files that came while a stored image was selected. */
  const [arrived, setArrived] = useState<File[]>([]);
  const navigate = useNavigate();
  /** The button of the selected image. */
  const thumbnail = useRef<HTMLElement>(null);

  function select(image: Image | null, files: File[] = []) {
    setSelected(image);
    setArrived(files);
  }

  return (
    <div className="grid gap-8 lg:grid-cols-2">
      <section
        aria-label={selected ? t('Selected image') : t('Upload an image')}
        className="lg:sticky lg:top-24 lg:order-2 lg:self-start"
      >
        <h2 className="mb-4 text-lg font-semibold">{selected ? t('Selected') : t('Upload new images')}</h2>
        {selected ? (
          <SelectedImage
            image={selected}
            onSelect={() => void navigate(`${prefix}/${selected.id}`)}
            onCancel={() => {
              select(null);
              thumbnail.current?.focus();
            }}
            onFile={(file) => select(null, [file])}
            onFiles={onFiles ?? ((files) => select(null, files))}
          />
        ) : (
          <UploadPanel prefix={prefix} maxDimension={maxDimension} onFiles={onFiles} arrived={arrived} />
        )}
      </section>
      <section aria-label={t('Your images')}>
        <h2 className="mb-4 text-lg font-semibold">{t('Your images')}</h2>
        <PickerGrid
          selected={selected}
          maxDimension={maxDimension}
          onSelect={(image, button) => {
            thumbnail.current = button;
            select(image);
          }}
          badge={badge}
        />
      </section>
    </div>
  );
}

type SelectedImageProps = {
  image: Image;
  onSelect: () => void;
  onCancel: () => void;
  onFile: (file: File) => void;
  onFiles: (files: File[]) => void;
};

function SelectedImage({ image, onSelect, onCancel, onFile, onFiles }: SelectedImageProps) {
  useIncomingFiles({ onFile, onFiles });
  const panel = useRef<HTMLDivElement>(null);
  const confirm = useRef<HTMLButtonElement>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: each selected image is shown.
  useEffect(() => {
    // The panel comes before the images, which may be many: Tab would not reach its buttons.
    confirm.current?.focus({ preventScroll: true });
    // On small screens it is above them.
    panel.current?.scrollIntoView?.({ block: 'nearest' });
  }, [image.id]);

  return (
    <div ref={panel} className="grid scroll-mb-4 gap-4">
      <PictureBox width={image.x} height={image.y}>
        <Picture
          src={image.previewUrl ?? image.url}
          alt={imageName(image)}
          className="checkerboard absolute inset-0 size-full"
        />
      </PictureBox>
      <p className="text-sm wrap-anywhere text-soft">{shortImageName(image)}</p>
      <div className="flex justify-end gap-3">
        <Button variant="secondary" onClick={onCancel}>
          {t('Cancel')}
        </Button>
        <Button ref={confirm} onClick={onSelect}>
          {t('Select')}
        </Button>
      </div>
    </div>
  );
}

type PickerGridProps = {
  selected: Image | null;
  maxDimension: number;
  onSelect: (image: Image, button: HTMLElement) => void;
  badge?: (imageId: string) => ReactNode;
};

function PickerGrid({ selected, maxDimension, onSelect, badge }: PickerGridProps) {
  const [search, setSearch] = useState('');
  const query = useImages({ ...allImages, search });
  const { images, total } = query;
  const grid = 'grid grid-cols-2 gap-3 sm:grid-cols-3';

  if (query.isPending) {
    return <SkeletonGrid className={grid} count={6} label={t('Loading images')} />;
  }
  const isEmpty = images?.length === 0 && !query.hasNextPage;
  if (isEmpty && !search) {
    return (
      <EmptyState icon="image" title={t(imageTexts.noImages)}>
        {t('Your uploads appear here.')}
      </EmptyState>
    );
  }
  return (
    <>
      {(search || total > MIN_FOR_SEARCH) && (
        <div className="mb-4 grid gap-2">
          <ImageSearch search={search} onSearch={setSearch} />
          <ImageCount total={total} search={search} />
        </div>
      )}
      {!images ? (
        <LoadFailure text={t(imageTexts.listFailed)} isTrying={query.isFetching} onTryAgain={query.refetch} />
      ) : isEmpty ? (
        <NoHits search={search} onShowAll={() => setSearch('')} />
      ) : (
        <ul
          aria-busy={query.isPlaceholderData}
          className={classNames(grid, query.isPlaceholderData && 'opacity-60')}
          onKeyDown={moveInGrid}
        >
          {images.map((image) => (
            <PickerItem
              key={image.id}
              image={image}
              isSelected={selected?.id === image.id}
              problem={isTooBig(image, maxDimension) ? tooBigText(maxDimension) : null}
              onSelect={onSelect}
              badge={badge?.(image.id)}
            />
          ))}
        </ul>
      )}
      <MoreImages query={query} />
    </>
  );
}

type PickerItemProps = {
  image: Image;
  isSelected: boolean;
  /** Why the tool cannot use it; null if it can. */
  problem: string | null;
  onSelect: (image: Image, button: HTMLElement) => void;
  badge: ReactNode;
};

function PickerItem({ image, isSelected, problem, onSelect, badge }: PickerItemProps) {
  const id = useId();
  return (
    <li className="min-w-0">
      <div className="relative">
        <button
          type="button"
          aria-pressed={isSelected}
          // Not disabled: the arrow keys pass it, and it says why it cannot be selected.
          aria-disabled={problem !== null || undefined}
          aria-describedby={problem === null ? undefined : id}
          onClick={(event) => problem === null && onSelect(image, event.currentTarget)}
          title={imageName(image)}
          className={classNames(
            'block w-full overflow-hidden rounded-md ring-offset-2 ring-offset-canvas aria-disabled:cursor-not-allowed aria-disabled:opacity-50',
            isSelected ? 'ring-2 ring-accent' : 'not-aria-disabled:hover:ring-2 hover:ring-control',
          )}
        >
          <ImageThumbnail image={image} alt={imageName(image)} />
        </button>
        {badge}
      </div>
      {image.name && (
        // The picture has the same name.
        <p dir="auto" aria-hidden="true" className="mt-1 truncate text-xs text-soft">
          {image.name}
        </p>
      )}
      {problem && (
        <p id={id} className="mt-1 text-xs text-danger">
          {problem}
        </p>
      )}
    </li>
  );
}
