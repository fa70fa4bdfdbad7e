import { useRef } from 'react';
import { LoadFailure } from '@/components/load-failure';
import { Skeleton } from '@/components/skeleton';
import type { WebhookWithSecret } from '@/lib/api-types';
import { t } from '@/lib/translate';
import { useDeleteWebhook } from './delete-webhook';
import { useWebhooks } from './get-webhooks';
import { webhookTexts } from './texts';
import { WebhookRow } from './webhook-row';

type WebhookListProps = {
  onRotated: (webhook: WebhookWithSecret) => void;
  onDeleted: (webhookId: string) => void;
};

export function WebhookList({ onRotated, onDeleted }: WebhookListProps) {
  const webhooks = useWebhooks();
  const list = useRef<HTMLDivElement>(null);
  const remove = useDeleteWebhook((webhookId) => {
    // The Delete button disappears with its row; the focus moves here.
    list.current?.focus();
    onDeleted(webhookId);
  });

  if (webhooks.isPending) {
    return (
      <div role="status" aria-label={t('Loading webhooks')}>
        <Skeleton className="h-18" />
      </div>
    );
  }
  if (!webhooks.data) {
    return (
      <LoadFailure
        text={t(webhookTexts.loadFailed)}
        isTrying={webhooks.isFetching}
        onTryAgain={() => void webhooks.refetch()}
      />
    );
  }
  return (
    <div ref={list} tabIndex={-1} className="rounded-lg border border-line bg-surface outline-none">
      {webhooks.data.length === 0 ? (
        <p className="px-4 py-6 text-center text-sm text-soft">{t('No webhooks yet')}</p>
      ) : (
        <ul aria-label={t('Your webhooks')} className="divide-y divide-line">
          {webhooks.data.map((webhook) => (
            <WebhookRow
              key={webhook.id}
              webhook={webhook}
              isDeleting={remove.isPending && remove.variables === webhook.id}
              onDelete={() => remove.mutate(webhook.id)}
              onRotated={onRotated}
            />
          ))}
        </ul>
      )}
    </div>
  );
}
