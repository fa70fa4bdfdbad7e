import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type { EditingTool } from '@/features/catalog/tool';
import { OriginalImage } from '@/features/images/original-image';
import { StoredImageTool } from '@/features/tools/stored-image-tool';
import type { Image } from '@/lib/api-types';
import { ToolPage } from './tool-page';

/** The page of Remove Background or Upscale for one stored image. */
export function ToolImage({ tool }: { tool: EditingTool }) {
  return (
    <ToolPage tool={tool}>{(image) => <ToolOnImage key={image.id} tool={tool} image={image} />}</ToolPage>
  );
}

function ToolOnImage({ tool, image }: { tool: EditingTool; image: Image }) {
  const queryClient = useQueryClient();
  const [isMissing, setMissing] = useState(false);

  async function lookForFile() {
    const { isFileMissing } = await import('@/features/tools/is-file-missing');
    setMissing(await isFileMissing(queryClient, image.url));
  }

  return (
    <StoredImageTool
      tool={tool}
      image={image}
      isMissing={isMissing}
      original={
        <OriginalImage
          image={image}
          // Without the code for the look, the network is down.
          onFailed={(hasFailed) => (hasFailed ? lookForFile().catch(() => {}) : setMissing(false))}
        />
      }
    />
  );
}
