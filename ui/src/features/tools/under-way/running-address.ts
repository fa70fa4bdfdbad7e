import type { Job, ToolName } from '@/lib/api-types';
import { paths } from '@/lib/paths';

const pageOf: Record<ToolName, (imageId: string) => string> = {
  'remove-background': paths.removeBackgroundOf,
  upscale: paths.upscaleOf,
  'magic-fix': paths.magicOf,
};

/** Where a run is shown while it goes on; of an image that was deleted meanwhile, where the others are. */
export function addressOf({ tool, imageId }: Job): string {
  return imageId ? pageOf[tool](imageId) : paths.images;
}

/** Whether an address is that of the page on which a run is shown. */
export function isShownAt(job: Job, pathname: string): boolean {
  // The tool for backgrounds has two addresses.
  return pathname.replace(/^\/background\//, `${paths.removeBackground}/`) === addressOf(job);
}
