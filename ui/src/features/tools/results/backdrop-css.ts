import type { Backdrop } from '@/lib/download';

/** A backdrop as the value of the style `background`. */
export function backdropCss(backdrop: Backdrop): string | undefined {
  if (!backdrop) return undefined;
  return 'color' in backdrop ? backdrop.color : `center / cover no-repeat url("${backdrop.address}")`;
}
