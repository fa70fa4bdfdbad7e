import { ButtonLink } from '@/components/button-link';
import { CenteredPage } from '@/components/centered-page';
import type { PaymentStatus } from '@/lib/api-types';
import { credits } from '@/lib/format';
import { paths } from '@/lib/paths';
import { checkoutPath } from './addresses';
import { isAwaitingMoney } from './get-payment-status';

/** Shown after the payment page, for a completed payment. */
export function PaymentThanks({ payment }: { payment: PaymentStatus }) {
  if (payment.order_status === 'failed') return <PaymentFailed payment={payment} />;
  return (
    <CenteredPage icon="check" title="Thank you for your order">
      <div className="grid gap-3">
        <p className="text-balance">
          A confirmation email will be sent to{' '}
          {payment.customer_email ? (
            <strong className="wrap-anywhere text-ink">{payment.customer_email}</strong>
          ) : (
            'your address'
          )}
          .
        </p>
        {payment.order_status === 'paid' && payment.fulfilled && (
          <p>{credits(payment.credits)} were added to your account.</p>
        )}
        {isAwaitingMoney(payment) && (
          <p>
            Your payment is on its way. We add the {credits(payment.credits)} as soon as it arrives. You can
            leave this page.
          </p>
        )}
      </div>
      <div className="flex flex-wrap justify-center gap-3">
        <ButtonLink to={paths.images}>Go to My Images</ButtonLink>
        <ButtonLink to={checkoutPath(payment.checkout_id)} variant="secondary">
          See the order
        </ButtonLink>
      </div>
    </CenteredPage>
  );
}

function PaymentFailed({ payment }: { payment: PaymentStatus }) {
  return (
    <CenteredPage icon="warning" title="The payment did not go through">
      <p>No credits were added. You can buy the pack again, or pay another way.</p>
      <div className="flex flex-wrap justify-center gap-3">
        <ButtonLink to={paths.pricing}>Choose a pack</ButtonLink>
        <ButtonLink to={checkoutPath(payment.checkout_id)} variant="secondary">
          See the order
        </ButtonLink>
      </div>
    </CenteredPage>
  );
}
