import { useState } from 'react';
import { Icon } from '@/components/icon';
import { formatBytes } from '@/lib/format';
import { t } from '@/lib/translate';
import type { CheckedPicture } from './use-verification';

/** The picture that is being checked, from the browser's memory. */
export function CheckedPictureView({ picture: { file, url } }: { picture: CheckedPicture }) {
  const [brokenUrl, setBrokenUrl] = useState<string | null>(null);
  return (
    <figure className="min-w-0">
      <div className="grid h-40 place-items-center overflow-hidden rounded-lg border border-line bg-sunken md:h-56 lg:h-72">
        {brokenUrl === url ? (
          <p className="grid justify-items-center gap-2 p-4 text-center text-sm text-soft">
            <Icon name="image" className="size-8" />
            {t('This browser cannot show the picture.')}
          </p>
        ) : (
          <img
            src={url}
            alt={t('Preview of {name}', { name: file.name })}
            onError={() => setBrokenUrl(url)}
            className="checkerboard max-h-full max-w-full min-h-0 object-contain"
          />
        )}
      </div>
      <figcaption className="mt-2 flex min-w-0 justify-between gap-4 text-sm text-soft">
        <bdi className="truncate">{file.name}</bdi>
        <span className="shrink-0 tabular-nums">{formatBytes(file.size)}</span>
      </figcaption>
    </figure>
  );
}
