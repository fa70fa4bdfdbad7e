import { lazy, Suspense } from 'react';
import { useParams } from 'react-router';
import { ButtonLink } from '@/components/button-link';
import { Icon } from '@/components/icon';
import { PageHeader } from '@/components/page-header';
import { Skeleton } from '@/components/skeleton';
import { DeleteImageButton } from '@/features/images/delete-image-button';
import { useImage } from '@/features/images/get-image';
import { ImageNotFound } from '@/features/images/image-not-found';
import { OriginalImage } from '@/features/images/original-image';
import { magicFix } from '@/features/tools/magic-fix/magic-fix';
import { removeBackground } from '@/features/tools/remove-background';
import { ResultSection } from '@/features/tools/results/result-section';
import { upscale } from '@/features/tools/upscale';
import { paths } from '@/lib/paths';

const RunningHere = lazy(() => import('@/features/tools/under-way/running-here'));

export default function ImageRoute() {
  const { imageId = '' } = useParams();
  const image = useImage(imageId);

  if (image.isError && !image.data) return <ImageNotFound backTo={paths.images} />;
  return (
    <div className="page py-8 md:py-12">
      <PageHeader title="Image">
        <DeleteImageButton key={imageId} imageId={imageId} />
      </PageHeader>
      <div className="grid gap-8 lg:grid-cols-[3fr_2fr]">
        {image.data ? <OriginalImage image={image.data} /> : <Skeleton className="h-[60dvh] rounded-lg" />}
        <nav aria-label="Tools" className="grid content-start gap-3 sm:max-lg:grid-cols-3">
          <h2 className="text-lg font-semibold sm:max-lg:col-span-full">Edit this image</h2>
          <ButtonLink to={paths.magicOf(imageId)} look="secondary" size="lg">
            <Icon name="magic" />
            Magic Fix
          </ButtonLink>
          <ButtonLink to={paths.removeBackgroundOf(imageId)} look="secondary" size="lg">
            <Icon name="cutout" />
            Remove Background
          </ButtonLink>
          <ButtonLink to={paths.upscaleOf(imageId)} look="secondary" size="lg">
            <Icon name="upscale" />
            Upscale
          </ButtonLink>
          <div className="sm:max-lg:col-span-full">
            <Suspense>
              <RunningHere key={imageId} imageId={imageId} />
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
