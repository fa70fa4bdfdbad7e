import { ButtonLink } from '@/components/button-link';
import { EmptyState } from '@/components/empty-state';
import { PageHeader } from '@/components/page-header';
import { useConfig } from '@/lib/env';
import { paths } from '@/lib/paths';

export default function CheckoutsRoute() {
  const { features } = useConfig();
  return (
    <div className="page py-8 md:py-12">
      <PageHeader title="Checkouts" />
      <EmptyState
        icon="info"
        title={features.payments ? 'No orders to show' : 'Packs cannot be bought on this server yet'}
      >
        <ButtonLink to={paths.pricing} look="secondary" size="sm" className="mt-2">
          See the packs
        </ButtonLink>
      </EmptyState>
    </div>
  );
}
