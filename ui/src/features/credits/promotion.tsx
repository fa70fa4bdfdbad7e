import { useConfig } from '@/lib/env';
import { formatMoney } from '@/lib/format';

/** The smallest pack in a few words. */
export function Promotion() {
  const [pack] = useConfig().packs;
  return pack && `${pack.credits} Credits for ${formatMoney(pack.amount, pack.currency)}`;
}
