import { useRef } from 'react';
import { ConfirmButton } from '@/components/confirm-button';
import { DateTime } from '@/components/date-time';
import { LoadFailure } from '@/components/load-failure';
import { Skeleton } from '@/components/skeleton';
import type { ApiKey } from '@/lib/api-types';
import { rich } from '@/lib/rich';
import { t } from '@/lib/translate';
import { useApiKeys } from './get-api-keys';
import { useRevokeApiKey } from './revoke-api-key';
import { accountTexts } from './texts';

export function ApiKeyList({ onRevoked }: { onRevoked: (keyId: string) => void }) {
  const keys = useApiKeys();
  const list = useRef<HTMLDivElement>(null);
  const revoke = useRevokeApiKey((keyId) => {
    // The Revoke button disappears with its row; the focus moves here.
    list.current?.focus();
    onRevoked(keyId);
  });

  if (keys.isPending) {
    return (
      <div role="status" aria-label={t('Loading API keys')} className="grid gap-3">
        <Skeleton className="h-18" />
        <Skeleton className="h-18" />
      </div>
    );
  }
  if (!keys.data) {
    return (
      <LoadFailure
        text={t(accountTexts.keysFailed)}
        isTrying={keys.isFetching}
        onTryAgain={() => void keys.refetch()}
      />
    );
  }
  return (
    <div ref={list} tabIndex={-1} className="rounded-lg border border-line bg-surface outline-none">
      {keys.data.length === 0 ? (
        <p className="px-4 py-6 text-center text-sm text-soft">{t('No keys yet')}</p>
      ) : (
        <ul aria-label={t('Your API keys')} className="divide-y divide-line">
          {keys.data.map((key) => (
            <Row
              key={key.id}
              apiKey={key}
              isBusy={revoke.isPending && revoke.variables === key.id}
              onRevoke={() => revoke.mutate(key.id)}
            />
          ))}
        </ul>
      )}
    </div>
  );
}

type RowProps = { apiKey: ApiKey; isBusy: boolean; onRevoke: () => void };

function Row({ apiKey: { name, prefix, createdAt, lastUsedAt }, isBusy, onRevoke }: RowProps) {
  return (
    <li className="flex flex-wrap items-center justify-between gap-x-6 gap-y-3 p-4">
      <div className="min-w-0">
        <p className="font-semibold wrap-anywhere">{name}</p>
        <p className="mt-1 text-sm text-soft">
          <code>{prefix}…</code>
          {' · '}
          {rich('created {date}', { date: <DateTime at={new Date(createdAt)} /> })}
          {' · '}
          {lastUsedAt
            ? rich('last used {date}', { date: <DateTime at={new Date(lastUsedAt)} /> })
            : t('never used')}
        </p>
      </div>
      <ConfirmButton
        variant="danger"
        size="sm"
        isBusy={isBusy}
        aria-label={t('Revoke {name}', { name })}
        question={{
          title: t('Revoke “{name}”?', { name }),
          text: t('Programs that use this key lose access at once. You cannot undo this.'),
          action: t('Revoke'),
          onConfirm: onRevoke,
        }}
      >
        {t('Revoke')}
      </ConfirmButton>
    </li>
  );
}
