import type { ReactNode } from 'react';
import { Link } from 'react-router';
import { ButtonLink } from '@/components/button-link';
import { DateTime } from '@/components/date-time';
import { EmptyState } from '@/components/empty-state';
import { Icon } from '@/components/icon';
import { LoadFailure } from '@/components/load-failure';
import { Skeleton } from '@/components/skeleton';
import type { Checkout } from '@/lib/api-types';
import { classNames } from '@/lib/class-names';
import { useConfig } from '@/lib/env';
import { credits, formatMoney } from '@/lib/format';
import { paths } from '@/lib/paths';
import { t } from '@/lib/translate';
import { checkoutPath, paymentPath } from './addresses';
import { useCheckouts } from './get-checkouts';
import { checkoutTexts } from './texts';

// With these, the three columns fit on a phone with 320 pixels in every language.
const cell = 'px-2 py-4 sm:px-3 md:px-6';
const headCell = 'px-2 py-3 font-semibold sm:px-3 md:px-6';

export function CheckoutTable() {
  const { features } = useConfig();
  const checkouts = useCheckouts();

  if (checkouts.isPending) return <SkeletonTable />;
  if (!checkouts.data) {
    return (
      <LoadFailure
        text={t(checkoutTexts.listFailed)}
        isTrying={checkouts.isFetching}
        onTryAgain={() => void checkouts.refetch()}
      />
    );
  }
  if (checkouts.data.length === 0) {
    return (
      <EmptyState
        icon="info"
        title={features.payments ? t('No orders to show') : t('This server does not sell credit packs yet')}
      >
        <ButtonLink to={paths.pricing} variant="secondary" size="sm" className="mt-2">
          {t('See the packs')}
        </ButtonLink>
      </EmptyState>
    );
  }
  return (
    <Table>
      {checkouts.data.map((checkout) => (
        <Row key={checkout.id} checkout={checkout} />
      ))}
    </Table>
  );
}

/** The date is the link; its hit area covers the whole row. */
function Row({ checkout }: { checkout: Checkout }) {
  return (
    <tr className="relative hover:bg-accent-wash has-focus-visible:bg-accent-wash">
      <td className={cell}>
        <Link
          to={checkoutPath(checkout.id)}
          className="font-semibold text-pretty underline-offset-4 after:absolute after:inset-0 hover:underline"
        >
          <DateTime at={new Date(checkout.created_at * 1000)} />
        </Link>
      </td>
      <td className={cell}>
        {isNotCompleted(checkout) ? (
          <NotCompleted checkout={checkout} />
        ) : (
          <Fulfillment checkout={checkout} />
        )}
      </td>
      <td className={classNames(cell, 'text-right break-keep tabular-nums sm:whitespace-nowrap')}>
        {credits(checkout.credits)}
      </td>
    </tr>
  );
}

/** Whether a payment of an order was started but never finished. */
function isNotCompleted({ status, fulfilled }: Checkout): boolean {
  return !fulfilled && (status === 'open' || status === 'expired');
}

function Fulfillment({ checkout }: { checkout: Checkout }) {
  return (
    <>
      {checkout.fulfilled ? (
        <Icon name="check" className="size-5 text-accent" />
      ) : (
        <Icon name="close" className="size-5 text-danger" />
      )}
      <span className="sr-only">{checkout.fulfilled ? t('Fulfilled') : t('Not fulfilled')}</span>
    </>
  );
}

/** A payment that the user started but did not finish: nothing went wrong, and nothing was charged. */
function NotCompleted({ checkout }: { checkout: Checkout }) {
  const { status, session_id: sessionId, total_amount: amount, currency } = checkout;
  return (
    <div className="flex flex-wrap items-center gap-x-4 gap-y-2">
      <p>
        {t(checkoutTexts.notCompleted)}
        {amount != null && currency && (
          <span className="block text-sm text-soft tabular-nums">{formatMoney(amount, currency)}</span>
        )}
      </p>
      {status === 'open' && sessionId && (
        // Above the link that covers the row.
        <ButtonLink to={paymentPath(sessionId)} variant="secondary" size="sm" className="relative z-10">
          {t('Continue')}
        </ButtonLink>
      )}
    </div>
  );
}

function SkeletonTable() {
  const slots = Array.from({ length: 4 }, (_, index) => `slot-${index}`);
  return (
    <div role="status" aria-label={t('Loading checkouts')}>
      <Table>
        {slots.map((slot) => (
          <tr key={slot}>
            <td className={cell}>
              <Skeleton className="h-6 w-24 sm:w-40" />
            </td>
            <td className={cell}>
              <Skeleton className="size-5" />
            </td>
            <td className={cell}>
              <Skeleton className="ml-auto h-6 w-16 sm:w-20" />
            </td>
          </tr>
        ))}
      </Table>
    </div>
  );
}

function Table({ children }: { children: ReactNode }) {
  return (
    <div className="overflow-x-auto rounded-lg border border-line bg-surface">
      <table className="w-full text-left max-sm:text-sm">
        <thead className="border-b border-line text-sm text-soft">
          <tr>
            <th scope="col" className={headCell}>
              {t('Date')}
            </th>
            <th scope="col" className={headCell}>
              {t('Fulfilled')}
            </th>
            <th scope="col" className={classNames(headCell, 'text-right')}>
              {t('Quantity')}
            </th>
          </tr>
        </thead>
        <tbody className="divide-y divide-line">{children}</tbody>
      </table>
    </div>
  );
}
