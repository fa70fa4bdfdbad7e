import { Suspense, useId } from 'react';
import { Link, useParams } from 'react-router';
import { Icon, type IconName } from '@/components/icon';
import { lazyWithRetry } from '@/components/lazy-with-retry';
import { PageHeader } from '@/components/page-header';
import { Skeleton } from '@/components/skeleton';
import { magicFix } from '@/features/catalog/magic-fix';
import { removeBackground } from '@/features/catalog/remove-background';
import { upscale } from '@/features/catalog/upscale';
import { DeleteImageButton } from '@/features/images/delete-image-button';
import { useImage } from '@/features/images/get-image';
import { ImageNotFound } from '@/features/images/image-not-found';
import { ImageSource } from '@/features/images/image-source';
import { OriginalImage } from '@/features/images/original-image';
import { ResultSection } from '@/features/results/result-section';
import { isProblem } from '@/lib/api-client';
import { paths } from '@/lib/paths';
import { toolName } from '@/lib/tool-names';
import { t } from '@/lib/translate';

const ActiveJobsOfImage = lazyWithRetry(() => import('@/features/runs/active-jobs-of-image'), null);

export default function ImageRoute() {
  const { imageId = '' } = useParams();
  const image = useImage(imageId);

  if (image.isError && (!image.data || isProblem(image.error, 404))) {
    return (
      <ImageNotFound
        backTo={paths.images}
        error={image.error}
        isTrying={image.isFetching}
        onTryAgain={image.refetch}
      />
    );
  }
  return (
    <div className="page py-8 md:py-12 low:py-6">
      <PageHeader title={t('Image')}>
        <DeleteImageButton key={imageId} imageId={imageId} />
      </PageHeader>
      <div className="grid gap-8 lg:grid-cols-[3fr_2fr]">
        {image.data ? (
          <OriginalImage image={image.data}>
            <ImageSource image={image.data} />
          </OriginalImage>
        ) : (
          <Skeleton className="h-[60dvh] rounded-lg" />
        )}
        <nav aria-label={t('Tools')} className="grid content-start gap-3 sm:max-lg:grid-cols-3">
          <h2 className="text-lg font-semibold sm:max-lg:col-span-full">{t('Edit this image')}</h2>
          <ToolLink
            to={paths.magicImage(imageId)}
            icon="magic"
            name={toolName('magic-fix')}
            text={t('Change what you mark')}
          />
          <ToolLink
            to={paths.removeBackgroundImage(imageId)}
            icon="cutout"
            name={toolName('remove-background')}
            text={t('Keep only the subject')}
          />
          <ToolLink
            to={paths.upscaleImage(imageId)}
            icon="upscale"
            name={toolName('upscale')}
            text={t('Enlarge it 2X or 4X')}
          />
          <div className="sm:max-lg:col-span-full">
            <Suspense>
              <ActiveJobsOfImage key={imageId} imageId={imageId} />
            </Suspense>
          </div>
        </nav>
      </div>
      <div className="mt-12 grid gap-12">
        <ResultSection tool={removeBackground} imageId={imageId} />
        <ResultSection tool={upscale} imageId={imageId} />
        <ResultSection tool={magicFix} imageId={imageId} />
      </div>
    </div>
  );
}

type ToolLinkProps = { to: string; icon: IconName; name: string; text: string };

function ToolLink({ to, icon, name, text }: ToolLinkProps) {
  const id = useId();
  return (
    <Link
      to={to}
      aria-labelledby={`${id}-name`}
      aria-describedby={`${id}-text`}
      className="flex items-center gap-4 rounded-md border border-control bg-surface p-4 transition-colors hover:bg-sunken"
    >
      <span className="grid size-10 shrink-0 place-items-center rounded-full bg-accent-wash text-accent">
        <Icon name={icon} />
      </span>
      <span className="min-w-0">
        <span id={`${id}-name`} className="block font-semibold">
          {name}
        </span>
        <span id={`${id}-text`} className="block text-sm text-soft">
          {text}
        </span>
      </span>
    </Link>
  );
}
