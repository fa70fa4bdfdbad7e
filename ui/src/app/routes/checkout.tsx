import { useQuery } from '@tanstack/react-query';
import { Navigate, useSearchParams } from 'react-router';
import { LoadFailure } from '@/components/load-failure';
import { thanksPath } from '@/features/checkouts/addresses';
import { checkoutsQuery } from '@/features/checkouts/get-checkouts';
import { usePaymentStatus } from '@/features/checkouts/get-payment-status';
import { OpenPayment, OpenPaymentSkeleton } from '@/features/checkouts/open-payment';
import { checkoutTexts } from '@/features/checkouts/texts';
import { isProblem } from '@/lib/api-client';
import { paths } from '@/lib/paths';
import { t } from '@/lib/translate';

/** Continues the payment named in the URL, or else the newest open one. */
export default function CheckoutRoute() {
  const [search] = useSearchParams();
  const sessionId = search.get('session_id');
  return sessionId ? <Payment sessionId={sessionId} /> : <NewestPayment />;
}

function NewestPayment() {
  // The order may be newer than a list that was loaded a moment ago.
  const checkouts = useQuery({ ...checkoutsQuery, refetchOnMount: 'always' });
  const open = checkouts.data?.find(({ status, session_id }) => status === 'open' && session_id);

  if (open?.session_id) return <Payment sessionId={open.session_id} />;
  if (checkouts.isPending || (checkouts.data && checkouts.isFetching)) return <OpenPaymentSkeleton />;
  if (checkouts.data) return <Navigate to={paths.pricing} replace />;
  return <Failure text={t(checkoutTexts.listFailed)} query={checkouts} />;
}

function Payment({ sessionId }: { sessionId: string }) {
  const payment = usePaymentStatus(sessionId);

  if (payment.isPending) return <OpenPaymentSkeleton />;
  if (!payment.data) {
    // The payment does not exist or belongs to someone else.
    if (isProblem(payment.error, 404)) return <Navigate to={paths.pricing} replace />;
    return <Failure text={t(checkoutTexts.paymentFailed)} query={payment} />;
  }
  if (payment.data.status === 'complete') return <Navigate to={thanksPath(sessionId)} replace />;
  if (payment.data.status === 'expired') return <Navigate to={paths.pricing} replace />;
  return <OpenPayment payment={payment.data} />;
}

type FailureProps = { text: string; query: { isFetching: boolean; refetch: () => unknown } };

function Failure({ text, query }: FailureProps) {
  return (
    <div className="page py-8 md:py-12">
      <title>{t('Checkout · Retouch')}</title>
      <h1 className="mb-6 text-xl font-bold md:text-2xl">{t('Checkout')}</h1>
      <LoadFailure text={text} isTrying={query.isFetching} onTryAgain={() => void query.refetch()} />
    </div>
  );
}
