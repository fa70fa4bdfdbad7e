import type { Image, ToolName } from '@/lib/api-types';

/** The name of an image's file. One that was uploaded without a name is named by its date and size. */
export function imageName({ name, createdAt, x, y }: Image): string {
  const date = new Date(createdAt).toLocaleString('en-US', { dateStyle: 'medium', timeStyle: 'short' });
  return name ?? `Image of ${date}, ${x} × ${y} px`;
}

/** The name where space is short. */
export function shortImageName({ name, createdAt }: Image): string {
  return name ?? new Date(createdAt).toLocaleDateString('en-US', { dateStyle: 'medium' });
}

const origins: Record<ToolName, string> = {
  'remove-background': 'a cut-out',
  upscale: 'an upscale',
  'magic-fix': 'a fix',
};

/** Names the kind of result that an image was made from; null for an upload. */
export function imageOrigin({ madeFrom }: Image): string | null {
  return madeFrom ? `Made from ${origins[madeFrom.tool]}` : null;
}
