import { useConfig } from '@/lib/env';
import { formatMoney } from '@/lib/format';

/** The smallest pack and its price. */
export function Promotion() {
  const [pack] = useConfig().packs;
  return pack && `${pack.credits} Credits for ${formatMoney(pack.amount, pack.currency)}`;
}
