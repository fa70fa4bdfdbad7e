import { Link, useParams } from 'react-router';
import { Icon } from '@/components/icon';
import { LoadFailure } from '@/components/load-failure';
import { Notice } from '@/components/notice';
import { CheckoutDetails, CheckoutDetailsSkeleton } from '@/features/checkouts/checkout-details';
import { useCheckout } from '@/features/checkouts/get-checkout';
import { checkoutTexts } from '@/features/checkouts/texts';
import { isProblem } from '@/lib/api-client';
import { paths } from '@/lib/paths';
import { t } from '@/lib/translate';

export default function CheckoutDetailsRoute() {
  const { checkoutId = '' } = useParams();
  const checkout = useCheckout(checkoutId);

  return (
    <div className="page py-8 md:py-12">
      <title>{t('Order Details · Retouch')}</title>
      <header className="mb-6 flex items-center gap-2">
        <Link
          to={paths.checkouts}
          aria-label={t('Back to Checkouts')}
          className="-ml-2 grid size-11 shrink-0 place-items-center rounded-md hover:bg-sunken"
        >
          <Icon name="back" />
        </Link>
        <h1 className="text-xl font-bold md:text-2xl">{t('Order Details')}</h1>
      </header>
      {checkout.data ? (
        <CheckoutDetails checkout={checkout.data} />
      ) : checkout.isPending ? (
        <CheckoutDetailsSkeleton />
      ) : isProblem(checkout.error, 404) ? (
        <Notice tone="error">{t(checkoutTexts.notFound)}</Notice>
      ) : (
        <LoadFailure
          text={t(checkoutTexts.oneFailed)}
          isTrying={checkout.isFetching}
          onTryAgain={() => void checkout.refetch()}
        />
      )}
    </div>
  );
}
