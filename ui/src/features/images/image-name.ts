import type { Image, ToolName } from '@/lib/api-types';
import { currentLocale, type Message, msg, t } from '@/lib/translate';

/** The name of an image's file. One that was uploaded without a name is named by its date and size. */
export function imageName({ name, createdAt, x, y }: Image): string {
  const date = new Date(createdAt).toLocaleString(currentLocale(), {
    dateStyle: 'medium',
    timeStyle: 'short',
  });
  return name ?? t('Image of {date}, {x} × {y} px', { date, x, y });
}

/** The name where space is short. */
export function shortImageName({ name, createdAt }: Image): string {
  return name ?? new Date(createdAt).toLocaleDateString(currentLocale(), { dateStyle: 'medium' });
}

const origins: Record<ToolName, Message> = {
  'remove-background': msg('Made from a cutout'),
  upscale: msg('Made from an upscale'),
  'magic-fix': msg('Made from a fix'),
};

/** Names the kind of result that an image was made from; null for an upload. */
export function imageOrigin({ madeFrom }: Image): string | null {
  return madeFrom ? t(origins[madeFrom.tool]) : null;
}
