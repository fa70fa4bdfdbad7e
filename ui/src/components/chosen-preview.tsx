import type { ReactNode } from 'react';
import { formatBytes } from '@/lib/format';
import { t } from '@/lib/translate';
import type { ChosenImage } from '@/lib/use-chosen-image';
import { Notice } from './notice';
import { PictureBox } from './picture-box';
import { Skeleton } from './skeleton';

type ChosenPreviewProps = { chosen: ChosenImage; overlay?: ReactNode };

/** The chosen file, in the size that its result will have on the page. */
export function ChosenPreview({ chosen, overlay }: ChosenPreviewProps) {
  const { file, url, size, problem, isReady } = chosen;
  return (
    <div className="grid gap-3">
      {/* The size is known after decoding; a file that is not an image never has one. */}
      {size ? (
        <PictureBox width={size.x} height={size.y} overlay={overlay}>
          <img
            src={url}
            alt={t('Preview of {name}', { name: file.name })}
            className="checkerboard absolute inset-0 size-full"
          />
        </PictureBox>
      ) : isReady ? (
        <div className="relative grid h-72 place-content-center rounded-lg bg-sunken p-4 text-soft">
          {t('This browser cannot show the picture.')}
          {overlay}
        </div>
      ) : (
        !problem && <Skeleton className="h-72" />
      )}
      <p className="flex min-w-0 justify-between gap-4 text-sm text-soft">
        <bdi className="truncate">{file.name}</bdi>
        <span className="shrink-0">
          {size ? `${t('{x} × {y} px', { x: size.x, y: size.y })} · ` : ''}
          {formatBytes(file.size)}
        </span>
      </p>
      {problem && <Notice tone="error">{problem}</Notice>}
    </div>
  );
}
