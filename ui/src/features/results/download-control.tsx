import { useMutation } from '@tanstack/react-query';
import { type ReactNode, useState } from 'react';
import { Button } from '@/components/button';
import { Icon } from '@/components/icon';
import { Notice } from '@/components/notice';
import { ApiError } from '@/lib/api-client';
import type { DownloadFormat } from '@/lib/download';
import { failureText, UserError } from '@/lib/failure-text';
import { loadWithRetry, prefetch } from '@/lib/load-with-retry';
import { notifyError, notifyInfo } from '@/lib/notify';
import { t } from '@/lib/translate';

const labels: Record<DownloadFormat, string> = { png: 'PNG', jpg: 'JPG', webp: 'WebP' };
const loadDownload = () => import('@/lib/download');

type Content = {
  /** Makes the file. */
  fileOf: (format: DownloadFormat) => Promise<Blob>;
  /** The file has been downloaded or copied. */
  onSaved?: () => void;
};

type DownloadControlProps = Content & {
  /** Further actions in the row. */
  children?: ReactNode;
};

/** Downloads or copies a picture. */
export function DownloadControl({ children, ...atClick }: DownloadControlProps) {
  const [format, setFormat] = useState<DownloadFormat>('png');
  const download = useMutation({
    mutationFn: async ({ fileOf }: Content) => {
      const { saveFile } = await loadWithRetry(loadDownload);
      saveFile(await fileOf(format), `downloaded_image.${format}`);
    },
    onSuccess: (_, { onSaved }) => onSaved?.(),
    onError: () => notifyError(t('Failed to download image')),
  });
  const copy = useMutation({
    mutationFn: async ({ fileOf }: Content) => {
      // Safari may hide why the promise in the clipboard item failed.
      const png = fileOf('png');
      await Promise.all([copyPicture(png), png]);
    },
    onSuccess: (_, { onSaved }) => {
      notifyInfo(t('Copied to the clipboard'));
      onSaved?.();
    },
    onError: () => notifyError(t('Failed to copy the image')),
  });
  const isBusy = download.isPending || copy.isPending;
  const error = isBusy ? null : (download.error ?? copy.error);

  function start(action: typeof download, other: typeof download) {
    if (isBusy) return;
    other.reset();
    // The picture may change before its file arrives; the file does not contain that change.
    action.mutate(atClick);
  }

  return (
    <>
      <div className="flex flex-wrap items-center gap-x-1.5 gap-y-3 sm:gap-x-2">
        <select
          aria-label={t('Format')}
          value={format}
          onChange={(event) => setFormat(event.target.value as DownloadFormat)}
          className="min-h-11 rounded-md border border-control bg-surface px-2 text-sm font-medium sm:px-3"
        >
          {Object.entries(labels).map(([name, label]) => (
            <option key={name} value={name}>
              {label}
            </option>
          ))}
        </select>
        <Button
          className="@max-lg:grow max-sm:px-3"
          isBusy={download.isPending}
          onPointerEnter={prefetch(loadDownload)}
          onClick={() => start(download, copy)}
        >
          {!download.isPending && <Icon name="download" className="size-5 max-sm:hidden" />}
          {t('Download')}
        </Button>
        {/* On a phone, these stay together: none of them is alone in a second row. */}
        <div className="flex grow flex-wrap justify-end gap-1.5 sm:contents">
          {'ClipboardItem' in window && (
            <Button
              variant="secondary"
              className="max-sm:grow max-sm:px-3"
              isBusy={copy.isPending}
              onClick={() => start(copy, download)}
            >
              {t('Copy')}
            </Button>
          )}
          {children}
        </div>
      </div>
      {error && (error instanceof UserError || (error instanceof ApiError && error.detail)) && (
        <Notice tone="error">{failureText(error)}</Notice>
      )}
    </>
  );
}

/**
 * Copies a picture as a PNG, the one format that every clipboard takes. Browsers encode it again, for safety, so a copy
 * has no marks.
 */
async function copyPicture(png: Promise<Blob>): Promise<void> {
  // Safari wants the promise itself: after a pause, the click no longer counts.
  await navigator.clipboard.write([new ClipboardItem({ 'image/png': png })]);
}
