import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { Button } from '@/components/button';
import { Icon } from '@/components/icon';
import { isProblem } from '@/lib/api-client';
import type { Backdrop, DownloadFormat } from '@/lib/download';
import { loadWithRetry, prefetch } from '@/lib/load-with-retry';
import { notifyError, notifyInfo } from '@/lib/notify';
import { renewPictureUrl } from '@/lib/picture-urls';

const labels: Record<DownloadFormat, string> = { png: 'PNG', jpg: 'JPG', webp: 'WebP' };
const loadDownload = () => import('@/lib/download');

export function DownloadControl({ url, backdrop }: { url: string; backdrop: Backdrop }) {
  const [format, setFormat] = useState<DownloadFormat>('png');
  const queryClient = useQueryClient();
  const download = useMutation({
    mutationFn: async () => {
      const { downloadImage } = await loadWithRetry(loadDownload);
      await renewing((current) => downloadImage(current, format, backdrop));
    },
    onError: () => notifyError('Failed to download image'),
  });
  const copy = useMutation({
    mutationFn: async () => {
      const { copyImage } = await loadWithRetry(loadDownload);
      await renewing((current) => copyImage(current, backdrop));
    },
    onSuccess: () => notifyInfo('Copied to the clipboard'),
    onError: () => notifyError('Failed to copy the image'),
  });

  /** Does it again with a new URL if this one has expired. */
  async function renewing(work: (current: string) => Promise<void>) {
    try {
      await work(url);
    } catch (error) {
      const renewed = isProblem(error, 403) && (await renewPictureUrl(queryClient, url));
      if (!renewed) throw error;
      await work(renewed);
    }
  }

  return (
    <div className="flex gap-2">
      <select
        aria-label="Format"
        value={format}
        onChange={(event) => setFormat(event.target.value as DownloadFormat)}
        className="min-h-11 rounded-md border border-control bg-surface px-3 text-sm font-medium"
      >
        {Object.entries(labels).map(([name, label]) => (
          <option key={name} value={name}>
            {label}
          </option>
        ))}
      </select>
      <Button
        isBusy={download.isPending}
        onPointerEnter={prefetch(loadDownload)}
        onClick={() => download.mutate()}
      >
        <Icon name="download" />
        Download
      </Button>
      {'ClipboardItem' in window && (
        <Button
          variant="secondary"
          isBusy={copy.isPending}
          onPointerEnter={prefetch(loadDownload)}
          onClick={() => copy.mutate()}
        >
          Copy
        </Button>
      )}
    </div>
  );
}
