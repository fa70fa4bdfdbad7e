import { useParams } from 'react-router';
import { ButtonLink } from '@/components/button-link';
import { PageHeader } from '@/components/page-header';
import { Skeleton } from '@/components/skeleton';
import { useImage } from '@/features/images/get-image';
import { ImageNotFound } from '@/features/images/image-not-found';
import { OriginalImage } from '@/features/images/original-image';
import { StoredImageTool } from '@/features/tools/stored-image-tool';
import type { EditingTool } from '@/features/tools/tool';
import { toolNames } from '@/lib/tool-names';
import { Installed } from './installed';

/** A tool at work on one stored image. */
export function ToolOfImage({ tool }: { tool: EditingTool }) {
  return (
    <Installed name={tool.name}>
      <InstalledToolOfImage tool={tool} />
    </Installed>
  );
}

function InstalledToolOfImage({ tool }: { tool: EditingTool }) {
  const { imageId = '' } = useParams();
  const image = useImage(imageId);

  if (image.isError && !image.data) return <ImageNotFound backTo={tool.address} />;
  return (
    <div className="page py-8 md:py-12">
      <PageHeader title={toolNames[tool.name]}>
        <ButtonLink to={tool.address} look="secondary" size="sm">
          Choose another image
        </ButtonLink>
      </PageHeader>
      {image.data ? (
        // The key: another image is another tool, with nothing selected and no old message.
        <StoredImageTool
          key={imageId}
          tool={tool}
          image={image.data}
          original={<OriginalImage image={image.data} />}
        />
      ) : (
        <div className="grid gap-8 md:grid-cols-[2fr_3fr]" role="status" aria-label="Loading">
          <Skeleton className="h-96 rounded-lg" />
          <Skeleton className="h-[min(60dvh,32rem)] rounded-lg" />
        </div>
      )}
    </div>
  );
}
