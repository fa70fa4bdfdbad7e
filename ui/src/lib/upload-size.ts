import { formatBytes } from './format';
import { t } from './translate';

/** Says that a file is too large for an upload; null if it is not. */
export function tooLargeText({ size }: File, maxBytes: number): string | null {
  if (size <= maxBytes) return null;
  const limit = formatBytes(maxBytes);
  const bytes = formatBytes(size);
  // Rounded, a file a little above the limit has the same size as the limit.
  if (bytes === limit) return t('This file is too large. You can upload up to {limit}.', { limit });
  return t('This file is {bytes}. You can upload up to {limit}.', { bytes, limit });
}
