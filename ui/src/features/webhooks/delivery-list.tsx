import { Button } from '@/components/button';
import { DateTime } from '@/components/date-time';
import { LoadFailure } from '@/components/load-failure';
import { Skeleton } from '@/components/skeleton';
import type { Delivery } from '@/lib/api-types';
import { formatDuration } from '@/lib/format';
import { rich } from '@/lib/rich';
import { plural, t } from '@/lib/translate';
import { useDeliveries } from './get-deliveries';
import { useSendAgain } from './send-again';
import { eventTexts, problemTexts, webhookTexts } from './texts';

type DeliveryListProps = { id: string; webhookId: string; isEnabled: boolean };

export function DeliveryList({ id, webhookId, isEnabled }: DeliveryListProps) {
  const deliveries = useDeliveries(webhookId);
  const again = useSendAgain(webhookId);
  const all = deliveries.data?.pages.flatMap((page) => page.deliveries);

  if (deliveries.isPending) {
    return (
      <div id={id} role="status" aria-label={t('Loading deliveries')}>
        <Skeleton className="h-18" />
      </div>
    );
  }
  if (!all) {
    return (
      <div id={id}>
        <LoadFailure
          text={t(webhookTexts.deliveriesFailed)}
          isTrying={deliveries.isFetching}
          onTryAgain={() => void deliveries.refetch()}
        />
      </div>
    );
  }
  if (all.length === 0) {
    return (
      <p id={id} className="text-sm text-soft">
        {t('Nothing was sent in the last 14 days.')}
      </p>
    );
  }
  return (
    <div id={id} className="grid justify-items-start gap-3">
      <ul aria-label={t('Last deliveries')} className="w-full divide-y divide-line border-y border-line">
        {all.map((delivery) => (
          <Row
            key={delivery.id}
            delivery={delivery}
            canSend={isEnabled}
            isBusy={again.isPending && again.variables === delivery.id}
            onSendAgain={() => again.mutate(delivery.id)}
          />
        ))}
      </ul>
      {deliveries.hasNextPage && (
        <Button
          variant="secondary"
          size="sm"
          isBusy={deliveries.isFetchingNextPage}
          onClick={() => void deliveries.fetchNextPage()}
        >
          {t('Show more')}
        </Button>
      )}
    </div>
  );
}

type RowProps = { delivery: Delivery; canSend: boolean; isBusy: boolean; onSendAgain: () => void };

function Row({ delivery, canSend, isBusy, onSendAgain }: RowProps) {
  const { event, createdAt, attempts, state, nextAttemptAt } = delivery;
  return (
    <li className="flex flex-wrap items-center justify-between gap-x-6 gap-y-2 py-3 text-sm">
      <div className="min-w-0">
        <p>
          <span className="font-semibold">{t(eventTexts[event])}</span>
          {' · '}
          <DateTime at={new Date(createdAt)} />
        </p>
        <p className={state === 'failed' ? 'text-danger' : 'text-soft'}>
          {stateText(delivery)}
          {attempts > 1 && ` · ${plural(attempts, { one: '# attempt', other: '# attempts' })}`}
        </p>
        {nextAttemptAt && attempts > 0 && (
          <p className="text-soft">
            {rich('Next attempt {date}', { date: <DateTime at={new Date(nextAttemptAt)} /> })}
          </p>
        )}
      </div>
      {canSend && state !== 'waiting' && (
        <Button variant="secondary" size="sm" isBusy={isBusy} onClick={onSendAgain}>
          {t('Send again')}
        </Button>
      )}
    </li>
  );
}

/** The state of the delivery, in one line. */
function stateText({ state, attempts, responseStatus, problem, durationMs }: Delivery): string {
  if (state === 'waiting' && (attempts === 0 || durationMs == null)) return t('Being sent');
  const answer = responseStatus
    ? t('Answer {status} after {time}', {
        status: responseStatus,
        time: formatDuration(durationMs ?? 0),
      })
    : problem && t(problemTexts[problem]);
  const outcome =
    state === 'delivered' ? t('Delivered') : state === 'failed' ? t('Not delivered') : t('Waiting');
  return answer ? `${outcome} · ${answer}` : outcome;
}
