import { PageHeader } from '@/components/page-header';
import { CheckoutTable } from '@/features/checkouts/checkout-table';

export default function CheckoutsRoute() {
  return (
    <div className="page py-8 md:py-12">
      <PageHeader title="Checkouts" text="The packs of credits you have ordered." />
      <CheckoutTable />
    </div>
  );
}
