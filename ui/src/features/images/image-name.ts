import type { Image } from '@/lib/api-types';

/** Names an image by date and size, because uploads keep no file name. */
export function imageName({ createdAt, x, y }: Image): string {
  const date = new Date(createdAt).toLocaleString('en-US', { dateStyle: 'medium', timeStyle: 'short' });
  return `Image of ${date}, ${x} × ${y} px`;
}
