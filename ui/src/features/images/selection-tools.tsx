import { useEffect, useEffectEvent, useRef, useState } from 'react';
import { Button } from '@/components/button';
import { ConfirmButton } from '@/components/confirm-button';
import { Icon } from '@/components/icon';
import { IconButton } from '@/components/icon-button';
import type { Image } from '@/lib/api-types';
import { plural, t } from '@/lib/translate';
import { DownloadImages } from './download-images-control';
import type { useDownloadImages } from './use-download-images';

type SelectionToolsProps = {
  /** The selected images. */
  images: Image[];
  isAll: boolean;
  download: ReturnType<typeof useDownloadImages>;
  /** Returns the ids of all images. */
  onLoadAll: () => Promise<string[]>;
  onSelect: (imageIds: string[]) => void;
  onDelete: (imageIds: string[]) => void;
  onEnd: () => void;
  /** The focus was here, and these tools are gone. */
  onLeft: () => void;
};

/** The actions on the selected images. On a phone they are at the lower edge of the window. */
export default function SelectionTools(props: SelectionToolsProps) {
  const { images, isAll, download, onLoadAll, onSelect, onDelete, onEnd, onLeft } = props;
  const [isLoading, setLoading] = useState(false);
  const isOne = images.length === 1;

  const hasEnded = useRef(false);
  const leave = useEffectEvent(() => document.activeElement === document.body && onLeft());
  useEffect(() => {
    hasEnded.current = false;
    return () => {
      hasEnded.current = true;
      leave();
    };
  }, []);

  async function selectAll() {
    setLoading(true);
    const all = await onLoadAll();
    // The user may have ended the selection in the meantime.
    if (hasEnded.current) return;
    onSelect(all);
    setLoading(false);
  }

  return (
    <div data-selecting className="flex w-full flex-wrap items-center justify-between gap-3">
      <div className="-ml-2 flex min-w-0 items-center gap-1">
        <IconButton label={t('End selection')} onClick={onEnd}>
          <Icon name="close" />
        </IconButton>
        <p role="status" className="font-semibold whitespace-nowrap tabular-nums">
          {plural(images.length, { one: '# selected', other: '# selected' })}
        </p>
        {!isAll && (
          <Button variant="quiet" size="sm" isBusy={isLoading} onClick={() => void selectAll()}>
            {t('Select all')}
          </Button>
        )}
      </div>
      <div className="flex items-center gap-2 max-sm:fixed max-sm:inset-x-0 max-sm:bottom-(--offline) max-sm:justify-between max-sm:border-t max-sm:border-line max-sm:bg-surface max-sm:p-3">
        <DownloadImages images={images} download={download} />
        <ConfirmButton
          variant="danger"
          disabled={images.length === 0}
          aria-label={t('Delete')}
          question={{
            title: isOne
              ? t('Delete this image and all its results?')
              : plural(images.length, {
                  one: 'Delete # image and all its results?',
                  other: 'Delete # images and all their results?',
                }),
            text: isOne
              ? t(
                  'This deletes the original and all its results from the server for good. You cannot undo this.',
                )
              : t(
                  'This deletes the originals and all their results from the server for good. You cannot undo this.',
                ),
            action: t('Delete'),
            onConfirm: () => onDelete(images.map(({ id }) => id)),
          }}
        >
          <Icon name="trash" />
          <span className="max-sm:hidden">{t('Delete')}</span>
        </ConfirmButton>
      </div>
    </div>
  );
}
