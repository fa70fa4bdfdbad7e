import { useMutation } from '@tanstack/react-query';
import { useState } from 'react';
import { Button } from '@/components/button';
import { Icon } from '@/components/icon';
import type { Backdrop, DownloadFormat } from '@/lib/download';
import { notifyError } from '@/lib/notify';

const labels: Record<DownloadFormat, string> = { png: 'PNG', jpg: 'JPG', webp: 'WebP' };
const loadDownload = () => import('@/lib/download');

export function DownloadControl({ url, backdrop }: { url: string; backdrop: Backdrop }) {
  const [format, setFormat] = useState<DownloadFormat>('png');
  const download = useMutation({
    mutationFn: async () => (await loadDownload()).downloadImage(url, format, backdrop),
    onError: () => notifyError('Failed to download image'),
  });

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
      <Button isBusy={download.isPending} onPointerEnter={loadDownload} onClick={() => download.mutate()}>
        <Icon name="download" />
        Download
      </Button>
    </div>
  );
}
