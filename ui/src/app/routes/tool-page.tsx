import type { ReactNode } from 'react';
import { useParams } from 'react-router';
import { ButtonLink } from '@/components/button-link';
import { PageHeader } from '@/components/page-header';
import { Skeleton } from '@/components/skeleton';
import type { Tool } from '@/features/catalog/tool';
import { useImage } from '@/features/images/get-image';
import { ImageNotFound } from '@/features/images/image-not-found';
import { useActiveJobs } from '@/features/runs/get-active-jobs';
import { isProblem } from '@/lib/api-client';
import type { Image } from '@/lib/api-types';
import { formatPercent } from '@/lib/format';
import { toolName } from '@/lib/tool-names';
import { t } from '@/lib/translate';
import { Installed } from './installed';

type ToolPageProps = {
  tool: Tool;
  /** Renders the tool. Use the image id as the key, so that another image starts with fresh state. */
  children: (image: Image) => ReactNode;
};

/** The page of a tool for one stored image. */
export function ToolPage({ tool, children }: ToolPageProps) {
  return (
    <Installed name={tool.name}>
      <InstalledToolPage tool={tool}>{children}</InstalledToolPage>
    </Installed>
  );
}

function InstalledToolPage({ tool, children }: ToolPageProps) {
  const { imageId = '' } = useParams();
  const image = useImage(imageId);
  const jobs = useActiveJobs().data?.filter((job) => job.imageId === imageId && job.tool === tool.name);
  const fraction = jobs?.[0]?.progress?.fraction;

  if (image.isError && (!image.data || isProblem(image.error, 404))) {
    return (
      <ImageNotFound
        backTo={tool.pagePath}
        error={image.error}
        isTrying={image.isFetching}
        onTryAgain={image.refetch}
      />
    );
  }
  return (
    <div className="page py-8 md:py-12 low:py-6">
      <PageHeader
        title={toolName(tool.name)}
        status={fraction === undefined ? null : formatPercent(fraction)}
      >
        <ButtonLink to={tool.pagePath} variant="secondary" size="sm">
          {t('Choose another image')}
        </ButtonLink>
      </PageHeader>
      {image.data ? (
        children(image.data)
      ) : (
        <div className="grid gap-8 md:grid-cols-[2fr_3fr]" role="status" aria-label={t('Loading')}>
          <Skeleton className="h-96 rounded-lg" />
          <Skeleton className="h-[min(60dvh,32rem)] rounded-lg" />
        </div>
      )}
    </div>
  );
}
