import { OriginalImage } from '@/features/images/original-image';
import { StoredImageTool } from '@/features/tools/stored-image-tool';
import type { EditingTool } from '@/features/tools/tool';
import { ToolPage } from './tool-page';

/** A tool that needs nothing but a click, at work on one stored image. */
export function ToolOfImage({ tool }: { tool: EditingTool }) {
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
