import type { EditingTool } from '@/features/catalog/tool';
import { OriginalImage } from '@/features/images/original-image';
import { StoredImageTool } from '@/features/tools/stored-image-tool';
import { ToolPage } from './tool-page';

/** The page of Remove Background or Upscale for one stored image. */
export function ToolImage({ tool }: { tool: EditingTool }) {
  return (
    <ToolPage tool={tool}>
      {(image) => (
        <StoredImageTool
          key={image.id}
          tool={tool}
          image={image}
          original={<OriginalImage image={image} />}
        />
      )}
    </ToolPage>
  );
}
