import { useId, useRef, useState } from 'react';
import { Button } from '@/components/button';
import { ConfirmButton } from '@/components/confirm-button';
import { DateTime } from '@/components/date-time';
import { Notice } from '@/components/notice';
import type { Webhook, WebhookWithSecret } from '@/lib/api-types';
import { failureText } from '@/lib/failure-text';
import { notifyError } from '@/lib/notify';
import { rich } from '@/lib/rich';
import { t } from '@/lib/translate';
import { useChangeWebhook } from './change-webhook';
import { DeliveryList } from './delivery-list';
import { useRotateSecret } from './rotate-secret';
import { useSendTest } from './send-test';
import { eventTexts } from './texts';
import { WebhookForm } from './webhook-form';

type WebhookRowProps = {
  webhook: Webhook;
  isDeleting: boolean;
  onDelete: () => void;
  onRotated: (webhook: WebhookWithSecret) => void;
};

export function WebhookRow({ webhook, isDeleting, onDelete, onRotated }: WebhookRowProps) {
  const { id, url, description, events, enabled } = webhook;
  const [isEditing, setEditing] = useState(false);
  const [isOpen, setOpen] = useState(false);
  const deliveriesId = useId();
  const edit = useRef<HTMLButtonElement>(null);
  const change = useChangeWebhook(id);
  const rotate = useRotateSecret(id);
  const test = useSendTest(id);

  function replace() {
    rotate.mutate(undefined, {
      onSuccess: (rotated) => {
        onRotated(rotated);
        // Drops the secret, which only the screen still needs.
        rotate.reset();
      },
    });
  }

  function closeForm() {
    setEditing(false);
    // The button is back after the next render.
    setTimeout(() => edit.current?.focus());
  }

  if (isEditing) {
    return (
      <li className="p-4">
        <WebhookForm
          webhook={webhook}
          save={async (wish) => {
            await change.mutateAsync(wish);
            closeForm();
          }}
          onCancel={closeForm}
        />
      </li>
    );
  }
  return (
    <li className="grid gap-3 p-4">
      <div className="min-w-0">
        <p className="font-semibold wrap-anywhere">{url}</p>
        {description && <p className="mt-1 text-sm wrap-anywhere">{description}</p>}
        <p className="mt-1 text-sm text-soft">
          {enabled ? t('On') : t('Off')}
          {events.map((event) => ` · ${t(eventTexts[event])}`)}
        </p>
      </div>
      <State webhook={webhook} />
      <div className="flex flex-wrap gap-2">
        <Button
          variant="secondary"
          size="sm"
          aria-expanded={isOpen}
          aria-controls={isOpen ? deliveriesId : undefined}
          onClick={() => setOpen(!isOpen)}
        >
          {t('Last deliveries')}
        </Button>
        {enabled && (
          <Button
            variant="secondary"
            size="sm"
            isBusy={test.isPending}
            onClick={() => test.mutate(undefined, { onSuccess: () => setOpen(true) })}
          >
            {t('Send a test event')}
          </Button>
        )}
        <Button ref={edit} variant="secondary" size="sm" onClick={() => setEditing(true)}>
          {t('Edit')}
        </Button>
        <Button
          variant="secondary"
          size="sm"
          isBusy={change.isPending}
          onClick={() =>
            change.mutate({ enabled: !enabled }, { onError: (error) => void notifyError(failureText(error)) })
          }
        >
          {enabled ? t('Turn off') : t('Turn on')}
        </Button>
        <ConfirmButton
          variant="secondary"
          size="sm"
          isBusy={rotate.isPending}
          question={{
            title: t('Replace the secret?'),
            text: t(
              'You get a new secret. The old one also works for a day, so that you can change your program.',
            ),
            action: t('Replace the secret'),
            isSafe: true,
            // After the dialog has given the focus back, so that the new secret keeps it.
            onConfirm: () => setTimeout(replace),
          }}
        >
          {t('Replace the secret')}
        </ConfirmButton>
        <ConfirmButton
          variant="danger"
          size="sm"
          isBusy={isDeleting}
          aria-label={t('Delete {name}', { name: url })}
          question={{
            title: t('Delete this webhook?'),
            text: t('We no longer call {url}. Pending deliveries are dropped.', { url }),
            action: t('Delete'),
            onConfirm: onDelete,
          }}
        >
          {t('Delete')}
        </ConfirmButton>
      </div>
      {isOpen && <DeliveryList id={deliveriesId} webhookId={id} isEnabled={enabled} />}
    </li>
  );
}

/** What its owner should know about a webhook. */
function State({ webhook: { disabledReason, failingSince, oldSecretUntil } }: { webhook: Webhook }) {
  if (disabledReason === 'gone') {
    return (
      <Notice tone="warning">
        {t('We turned it off: the address answered 410, which means that it no longer accepts calls.')}
      </Notice>
    );
  }
  if (disabledReason === 'failing') {
    return (
      <Notice tone="warning">
        {t('We turned it off: every call failed for five days. Turn it on when the address works again.')}
      </Notice>
    );
  }
  return (
    <>
      {failingSince && (
        <Notice tone="warning">
          {rich('Every call has failed since {date}. After five days we turn it off.', {
            date: <DateTime at={new Date(failingSince)} />,
          })}
        </Notice>
      )}
      {oldSecretUntil && (
        <p className="text-sm text-soft">
          {rich('The old secret remains valid until {date}.', {
            date: <DateTime at={new Date(oldSecretUntil)} />,
          })}
        </p>
      )}
    </>
  );
}
