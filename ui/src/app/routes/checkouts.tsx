import { PageHeader } from '@/components/page-header';
import { CheckoutTable } from '@/features/checkouts/checkout-table';
import { t } from '@/lib/translate';

export default function CheckoutsRoute() {
  return (
    <div className="page py-8 md:py-12">
      <PageHeader title={t('Checkouts')} text={t('The packs of credits you have ordered.')} />
      <CheckoutTable />
    </div>
  );
}
