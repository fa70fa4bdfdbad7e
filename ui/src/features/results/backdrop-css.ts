import type { Backdrop } from '@/lib/download';

/** Converts a backdrop to a CSS `background`. */
export function backdropCss(backdrop: Backdrop): string | undefined {
  if (!backdrop) return undefined;
  return 'color' in backdrop ? backdrop.color : `center / cover no-repeat url("${backdrop.url}")`;
}
