import type { Image } from '@/lib/api-types';

/** Uploads keep no file name; date and size tell two images apart, also by ear. */
export function imageName({ createdAt, x, y }: Image): string {
  const date = new Date(createdAt).toLocaleString('en-US', { dateStyle: 'medium', timeStyle: 'short' });
  return `Image of ${date}, ${x} × ${y} px`;
}
