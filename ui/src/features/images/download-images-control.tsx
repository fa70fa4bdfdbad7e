import { useState } from 'react';
import { Button } from '@/components/button';
import { Icon } from '@/components/icon';
import { ProgressBar } from '@/components/progress-bar';
import type { ArchiveContent, Image } from '@/lib/api-types';
import { failureText } from '@/lib/failure-text';
import { formatBytes } from '@/lib/format';
import { prefetch } from '@/lib/load-with-retry';
import { type Message, msg, plural, t } from '@/lib/translate';
import { loadDownloadImages, type useDownloadImages } from './use-download-images';

/** The API puts this many images into one ZIP file. */
const MAX_IMAGES = 200;

const contents: Record<ArchiveContent, Message> = {
  originals: msg('Originals'),
  results: msg('Results'),
  all: msg('Originals and results'),
};

type DownloadImagesProps = { images: Image[]; download: ReturnType<typeof useDownloadImages> };

/** Downloads the images, their results, or both as one ZIP file. */
export function DownloadImages({ images, download }: DownloadImagesProps) {
  const [include, setInclude] = useState<ArchiveContent>('originals');
  const isTooMany = images.length > MAX_IMAGES;
  const problem = isTooMany
    ? plural(MAX_IMAGES, {
        one: 'A ZIP file holds at most # image.',
        other: 'A ZIP file holds at most # images.',
      })
    : download.error && failureText(download.error);

  if (download.isPending) return <DownloadProgress download={download} />;
  return (
    <div className="relative flex min-w-0 items-center gap-2">
      <select
        aria-label={t('What to download')}
        value={include}
        onChange={(event) => setInclude(event.target.value as ArchiveContent)}
        className="min-h-11 min-w-0 rounded-md border border-control bg-surface px-2 text-sm font-medium"
      >
        {Object.entries(contents).map(([value, label]) => (
          <option key={value} value={value}>
            {t(label)}
          </option>
        ))}
      </select>
      <Button
        variant="secondary"
        className="max-sm:px-3"
        disabled={images.length === 0 || isTooMany}
        onPointerEnter={prefetch(loadDownloadImages)}
        onClick={() => download.start({ images, include })}
      >
        <Icon name="download" className="size-5 max-sm:hidden" />
        {t('Download ZIP')}
      </Button>
      {problem && (
        <p
          role="alert"
          className="absolute right-0 bottom-full mb-5 w-max max-w-72 rounded-md bg-danger-wash px-3 py-2 text-sm text-danger shadow-raised sm:top-full sm:bottom-auto sm:mt-5"
        >
          {problem}
        </p>
      )}
    </div>
  );
}

function DownloadProgress({ download }: { download: DownloadImagesProps['download'] }) {
  const { received, expected, cancel } = download;
  return (
    <div className="flex min-w-0 items-center gap-3">
      <div className="grid w-40 min-w-0 gap-1">
        <p className="text-sm text-soft tabular-nums">
          {received > 0
            ? t('Downloading, {bytes}', { bytes: formatBytes(received) })
            : t('Preparing the ZIP file')}
        </p>
        <ProgressBar
          label={t('Download')}
          fraction={received > 0 && expected ? Math.min(1, received / expected) : null}
        />
      </div>
      <Button variant="quiet" size="sm" onClick={cancel}>
        {t('Cancel')}
      </Button>
    </div>
  );
}
