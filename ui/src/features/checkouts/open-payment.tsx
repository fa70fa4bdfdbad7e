import { ButtonLink } from '@/components/button-link';
import { buttonStyle } from '@/components/button-style';
import { CenteredPage } from '@/components/centered-page';
import { Notice } from '@/components/notice';
import { Skeleton } from '@/components/skeleton';
import type { PaymentStatus } from '@/lib/api-types';
import { useConfig } from '@/lib/env';
import { credits, formatMoney } from '@/lib/format';
import { paths } from '@/lib/paths';
import { dataText, msg, t } from '@/lib/translate';

const title = msg('Your payment is not finished');

/** An unpaid order, with links to its payment page and to the other packs. */
export function OpenPayment({ payment }: { payment: PaymentStatus }) {
  const { packs } = useConfig();
  // The status does not name the pack, but each pack has a different number of credits.
  const pack = packs.find((one) => one.credits === payment.credits);

  return (
    <CenteredPage title={t(title)}>
      <p>{t('You have not been charged. Continue where you left off, or choose another pack.')}</p>
      <section
        aria-label={t('Your pack')}
        className="grid w-full gap-1 rounded-lg border border-line bg-surface p-6 text-ink"
      >
        {pack && <p className="text-sm text-soft">{dataText(pack.label)}</p>}
        <p className="text-xl font-bold">{credits(payment.credits)}</p>
        {pack && <p className="text-lg tabular-nums">{formatMoney(pack.amount, pack.currency)}</p>}
      </section>
      {!payment.url && <Notice tone="warning">{t('You cannot continue this payment at the moment.')}</Notice>}
      <div className="flex flex-wrap justify-center gap-3">
        {payment.url && (
          <a href={payment.url} className={buttonStyle()}>
            {t('Continue payment')}
          </a>
        )}
        <ButtonLink to={paths.pricing} variant="secondary">
          {t('Choose another pack')}
        </ButtonLink>
      </div>
    </CenteredPage>
  );
}

export function OpenPaymentSkeleton() {
  return (
    <div
      className="page flex flex-col items-center py-16 md:py-24"
      role="status"
      aria-label={t('Loading the payment')}
    >
      <title>{t('Checkout · Retouch')}</title>
      <Skeleton className="h-9 w-80 max-w-full" />
      <Skeleton className="mt-4 h-6 w-96 max-w-full" />
      <Skeleton className="mt-6 h-32 w-full max-w-md" />
      <Skeleton className="mt-6 h-11 w-80 max-w-full" />
    </div>
  );
}
