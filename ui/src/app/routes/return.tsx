import { Navigate, useSearchParams } from 'react-router';
import { LoadFailure } from '@/components/load-failure';
import { Spinner } from '@/components/spinner';
import { paymentPath } from '@/features/checkouts/addresses';
import { usePaymentStatus } from '@/features/checkouts/get-payment-status';
import { PaymentThanks } from '@/features/checkouts/payment-thanks';
import { checkoutTexts } from '@/features/checkouts/texts';
import { isProblem } from '@/lib/api-client';
import { t } from '@/lib/translate';

/** An empty page. */
const emptyPage = <title>Retouch</title>;

/** The return page of the payment provider. */
export default function ReturnRoute() {
  const [search] = useSearchParams();
  // Screen readers announce the outcome when it replaces the spinner.
  return (
    <div aria-live="polite">
      <Outcome sessionId={search.get('session_id')} />
    </div>
  );
}

/** Empty for a payment that is neither open nor complete. */
function Outcome({ sessionId }: { sessionId: string | null }) {
  const payment = usePaymentStatus(sessionId);

  if (!sessionId) return emptyPage;
  if (payment.isPending) {
    return (
      <div className="flex items-center justify-center gap-3 py-24 text-soft">
        {emptyPage}
        <Spinner label={t('Checking your payment…')} />
      </div>
    );
  }
  if (!payment.data) {
    if (isProblem(payment.error, 404)) return emptyPage;
    return (
      <div className="page py-8 md:py-12">
        {emptyPage}
        <LoadFailure
          text={t(checkoutTexts.paymentFailed)}
          isTrying={payment.isFetching}
          onTryAgain={() => void payment.refetch()}
        />
      </div>
    );
  }
  if (payment.data.status === 'open') return <Navigate to={paymentPath(sessionId)} replace />;
  return payment.data.status === 'complete' ? <PaymentThanks payment={payment.data} /> : emptyPage;
}
