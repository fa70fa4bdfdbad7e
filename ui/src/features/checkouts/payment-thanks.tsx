import { ButtonLink } from '@/components/button-link';
import { CenteredPage } from '@/components/centered-page';
import type { PaymentStatus } from '@/lib/api-types';
import { credits } from '@/lib/format';
import { paths } from '@/lib/paths';
import { rich } from '@/lib/rich';
import { plural, t } from '@/lib/translate';
import { checkoutPath } from './addresses';
import { isAwaitingMoney } from './get-payment-status';

/** Thanks for a completed payment, on the return from the payment page. */
export function PaymentThanks({ payment }: { payment: PaymentStatus }) {
  if (payment.order_status === 'failed') return <PaymentFailed payment={payment} />;
  return (
    <CenteredPage icon="check" title={t('Thank you for your order')}>
      <div className="grid gap-3">
        <p className="text-balance">
          {payment.customer_email
            ? rich('A confirmation email will be sent to {email}.', {
                email: <strong className="wrap-anywhere text-ink">{payment.customer_email}</strong>,
              })
            : t('A confirmation email will be sent to your address.')}
        </p>
        {payment.order_status === 'paid' && payment.fulfilled && (
          <p>
            {plural(payment.credits, {
              one: '# credit was added to your account.',
              other: '# credits were added to your account.',
            })}
          </p>
        )}
        {isAwaitingMoney(payment) && (
          <p>
            {t(
              'Your payment is on its way. We add the {credits} as soon as it arrives. You can leave this page.',
              {
                credits: credits(payment.credits),
              },
            )}
          </p>
        )}
      </div>
      <div className="flex flex-wrap justify-center gap-3">
        <ButtonLink to={paths.images}>{t('Go to My Images')}</ButtonLink>
        <ButtonLink to={checkoutPath(payment.checkout_id)} variant="secondary">
          {t('See the order')}
        </ButtonLink>
      </div>
    </CenteredPage>
  );
}

function PaymentFailed({ payment }: { payment: PaymentStatus }) {
  return (
    <CenteredPage icon="warning" title={t('The payment did not go through')}>
      <p>{t('No credits were added. You can buy the pack again, or pay another way.')}</p>
      <div className="flex flex-wrap justify-center gap-3">
        <ButtonLink to={paths.pricing}>{t('Choose a pack')}</ButtonLink>
        <ButtonLink to={checkoutPath(payment.checkout_id)} variant="secondary">
          {t('See the order')}
        </ButtonLink>
      </div>
    </CenteredPage>
  );
}
