import { PageHeader } from '@/components/page-header';
import { ImageGrid } from '@/features/images/image-grid';
import { UploadPanel } from '@/features/images/upload-panel';
import { useImageFilter } from '@/features/images/use-image-filter';
import { useUploadQueue } from '@/features/images/use-upload-queue';
import { ProgressBadge } from '@/features/runs/progress-badge';
import { useConfig } from '@/lib/env';
import { paths } from '@/lib/paths';
import { t } from '@/lib/translate';

const badge = (imageId: string) => <ProgressBadge imageId={imageId} />;

export default function ImagesRoute() {
  const { limits } = useConfig();
  const { filter, setFilter } = useImageFilter();
  const uploadAll = useUploadQueue(paths.images, limits.maxDimension);
  return (
    <div className="page py-8 md:py-12 low:py-6">
      <PageHeader title={t('My Images')} text={t('Your uploads, kept until you delete them.')} />
      <section aria-label={t('Upload an image')} className="mb-12">
        <UploadPanel prefix={paths.images} maxDimension={limits.maxDimension} onFiles={uploadAll} isRow />
      </section>
      <ImageGrid filter={filter} onFilter={setFilter} badge={badge} />
    </div>
  );
}
