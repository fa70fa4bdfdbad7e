import type { ReactNode } from 'react';
import { ButtonLink } from '@/components/button-link';
import { DateTime } from '@/components/date-time';
import { Notice } from '@/components/notice';
import { Skeleton } from '@/components/skeleton';
import type { Checkout } from '@/lib/api-types';
import { credits, formatMoney } from '@/lib/format';
import { dataText, plural, t } from '@/lib/translate';
import { paymentPath } from './addresses';
import { Chip } from './chip';

const cards = 'grid gap-4 sm:grid-cols-2';

export function CheckoutDetails({ checkout }: { checkout: Checkout }) {
  const { status, total_amount: amount, currency, session_id: sessionId } = checkout;
  return (
    <>
      <div className="mb-6 flex flex-wrap gap-2">
        {/* The API's word; only its styling is capitalized. */}
        <Chip tone={status === 'paid' ? 'success' : 'error'}>
          <span className="inline-block first-letter:uppercase">{dataText(status)}</span>
        </Chip>
        <Chip tone={checkout.fulfilled ? 'success' : 'warning'}>
          {checkout.fulfilled ? t('Fulfilled') : t('To be fulfilled')}
        </Chip>
      </div>
      <dl className={cards}>
        <Card title={t('Date')}>
          <DateTime at={new Date(checkout.created_at * 1000)} />
        </Card>
        <Card title={t('Quantity')}>{plural(checkout.credits, { one: '# Credit', other: '# Credits' })}</Card>
        <Card title={t('Customer Email')}>{checkout.email || t('Unknown')}</Card>
        <Card title={t('Amount')}>
          {amount != null && currency ? formatMoney(amount, currency) : t('Unknown')}
        </Card>
      </dl>
      {checkout.credits_taken_back > 0 && (
        <div className="mt-6">
          <Notice>{revocationText(checkout)}</Notice>
        </div>
      )}
      {status === 'open' && sessionId && (
        <ButtonLink to={paymentPath(sessionId)} className="mt-6">
          {t('Continue payment')}
        </ButtonLink>
      )}
    </>
  );
}

function revocationText({ credits_taken_back: taken, credits: bought, status }: Checkout): string {
  const values = { bought: credits(bought) };
  return status === 'disputed'
    ? plural(
        taken,
        {
          one: '# of these {bought} was taken back because the payment was disputed.',
          other: '# of these {bought} were taken back because the payment was disputed.',
        },
        values,
      )
    : plural(
        taken,
        {
          one: '# of these {bought} was taken back because the payment was refunded.',
          other: '# of these {bought} were taken back because the payment was refunded.',
        },
        values,
      );
}

function Card({ title, children }: { title: string; children: ReactNode }) {
  return (
    <div className="min-w-0 rounded-lg border border-line bg-surface p-6">
      <dt className="text-sm text-soft">{title}</dt>
      <dd className="mt-1 text-lg font-semibold tabular-nums">{children}</dd>
    </div>
  );
}

export function CheckoutDetailsSkeleton() {
  return (
    <div role="status" aria-label={t('Loading the order')}>
      <div className="mb-6 flex gap-2">
        <Skeleton className="h-7 w-20" />
        <Skeleton className="h-7 w-28" />
      </div>
      <div className={cards}>
        {['date', 'quantity', 'email', 'amount'].map((slot) => (
          <Skeleton key={slot} className="h-26" />
        ))}
      </div>
    </div>
  );
}
