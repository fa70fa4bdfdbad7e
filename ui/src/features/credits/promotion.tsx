import { useConfig } from '@/lib/env';
import { formatMoney } from '@/lib/format';
import { plural } from '@/lib/translate';

/** The smallest pack and its price. */
export function Promotion() {
  const [pack] = useConfig().packs;
  return (
    pack &&
    plural(
      pack.credits,
      { one: '# Credit for {price}', other: '# Credits for {price}' },
      { price: formatMoney(pack.amount, pack.currency) },
    )
  );
}
