import { Suspense } from 'react';
import { lazyWithRetry } from '@/components/lazy-with-retry';
import { PageHeader } from '@/components/page-header';
import { ImageGrid } from '@/features/images/image-grid';
import { UploadPanel } from '@/features/images/upload-panel';
import { useConfig } from '@/lib/env';
import { paths } from '@/lib/paths';

const ActiveJobsBadge = lazyWithRetry(() => import('@/features/runs/active-jobs-badge'), null);

export default function ImagesRoute() {
  const { limits } = useConfig();
  return (
    <div className="page py-8 md:py-12">
      <PageHeader title="My Images" text="Your uploads, kept until you delete them." />
      <div className="mb-12">
        <UploadPanel prefix={paths.images} maxDimension={limits.maxDimension} />
      </div>
      <ImageGrid
        badge={(imageId) => (
          <Suspense>
            <ActiveJobsBadge imageId={imageId} />
          </Suspense>
        )}
      />
    </div>
  );
}
