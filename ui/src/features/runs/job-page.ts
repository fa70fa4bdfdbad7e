import type { Job, ToolName } from '@/lib/api-types';
import { paths } from '@/lib/paths';

const imagePage: Record<ToolName, (imageId: string) => string> = {
  'remove-background': paths.removeBackgroundImage,
  upscale: paths.upscaleImage,
  'magic-fix': paths.magicImage,
};

/** The path of the page that shows a job. If its image has been deleted, the path of the image list. */
export function jobPage({ tool, imageId }: Job): string {
  return imageId ? imagePage[tool](imageId) : paths.images;
}
