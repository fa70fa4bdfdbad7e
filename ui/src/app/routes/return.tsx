import { Navigate, useSearchParams } from 'react-router';
import { LoadFailure } from '@/components/load-failure';
import { Spinner } from '@/components/spinner';
import { paymentOf } from '@/features/checkouts/addresses';
import { usePaymentStatus } from '@/features/checkouts/get-payment-status';
import { PaymentThanks } from '@/features/checkouts/payment-thanks';
import { checkoutTexts } from '@/features/checkouts/texts';
import { isProblem } from '@/lib/api-client';

/** The page's shell with nothing in it. */
const nothing = <title>Retouch</title>;

/** Where the payment page sends people back to. */
export default function ReturnRoute() {
  const [search] = useSearchParams();
  // What is loaded takes the place of what was waited for, and is read out as it comes.
  return (
    <div aria-live="polite">
      <Outcome sessionId={search.get('session_id')} />
    </div>
  );
}

/** Nothing at all for a payment that is neither open nor complete. */
function Outcome({ sessionId }: { sessionId: string | null }) {
  const payment = usePaymentStatus(sessionId);

  if (!sessionId) return nothing;
  if (payment.isPending) {
    return (
      <div className="flex items-center justify-center gap-3 py-24 text-soft">
        {nothing}
        <Spinner label="Checking your payment…" />
      </div>
    );
  }
  if (!payment.data) {
    if (isProblem(payment.error, 404)) return nothing;
    return (
      <div className="page py-8 md:py-12">
        {nothing}
        <LoadFailure
          text={checkoutTexts.paymentFailed}
          isTrying={payment.isFetching}
          onTryAgain={() => void payment.refetch()}
        />
      </div>
    );
  }
  if (payment.data.status === 'open') return <Navigate to={paymentOf(sessionId)} replace />;
  return payment.data.status === 'complete' ? <PaymentThanks payment={payment.data} /> : nothing;
}
