import { memo, type ReactNode } from 'react';
import { ButtonLink } from '@/components/button-link';
import { Icon } from '@/components/icon';
import type { Image } from '@/lib/api-types';
import { classNames } from '@/lib/class-names';
import { formatBytes } from '@/lib/format';
import { useLanguage } from '@/lib/language';
import { paths } from '@/lib/paths';
import { t } from '@/lib/translate';
import { imageName, imageOrigin, shortImageName } from './image-name';
import { ImageThumbnail } from './image-thumbnail';

type ImageCardProps = {
  image: Image;
  isSelected: boolean;
  /** Whether any image is selected: then a click anywhere on a picture selects it too. */
  isSelecting: boolean;
  onToggle: (imageId: string, isRange: boolean) => void;
  /** Adds an overlay. */
  badge?: (imageId: string) => ReactNode;
};

/** An image of the grid: a checkbox, and a link to its page. */
export const ImageCard = memo(function ImageCard(props: ImageCardProps) {
  useLanguage();
  const { image, isSelected, isSelecting, onToggle, badge } = props;
  const name = imageName(image);
  return (
    <li className="group relative grid min-w-0 content-start gap-2">
      <div className={classNames('relative rounded-md', isSelected && 'ring-3 ring-accent')}>
        <ImageThumbnail image={image} alt={name} />
        {badge?.(image.id)}
        {/* The checkbox itself takes the clicks, because Firefox does not pass a Shift-click on from a label. */}
        <input
          type="checkbox"
          aria-label={t('Add {name} to the selection', { name })}
          checked={isSelected}
          onChange={({ nativeEvent }) =>
            onToggle(image.id, nativeEvent instanceof MouseEvent && nativeEvent.shiftKey)
          }
          className={classNames(
            'peer absolute top-0 left-0 z-10 cursor-pointer opacity-0',
            isSelecting ? 'size-full' : 'size-11',
          )}
        />
        <span
          aria-hidden="true"
          className={classNames(
            'pointer-events-none absolute top-2 left-2 grid size-6 place-items-center rounded-sm border shadow-raised peer-focus-visible:outline-2 peer-focus-visible:outline-offset-2 peer-focus-visible:outline-accent',
            isSelected ? 'border-accent bg-accent text-on-accent' : 'border-control bg-surface',
            // A mouse sees it on the picture it points at.
            !isSelecting && 'pointer-fine:not-group-hover:not-peer-focus-visible:opacity-0',
          )}
        >
          {isSelected && <Icon name="check" className="size-4" />}
        </span>
      </div>
      <div className="min-w-0">
        <p dir="auto" className="truncate text-sm font-medium" title={name}>
          {shortImageName(image)}
        </p>
        <p className="truncate text-xs text-soft tabular-nums">
          {imageOrigin(image) ?? `${image.x} × ${image.y} · ${formatBytes(image.sizeBytes)}`}
        </p>
      </div>
      <ButtonLink
        to={paths.image(image.id)}
        variant="secondary"
        size="sm"
        // The link's hit area includes the picture.
        className="after:absolute after:inset-0 after:rounded-md group-hover:bg-sunken"
        aria-label={t('Select {name}', { name })}
      >
        {t('Select')}
      </ButtonLink>
    </li>
  );
});
