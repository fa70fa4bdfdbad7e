import { Suspense } from 'react';
import { lazyWithRetry } from '@/components/lazy-with-retry';
import { PageHeader } from '@/components/page-header';
import { Skeleton } from '@/components/skeleton';
import { ApiKeysSection } from '@/features/account/api-keys-section';
import { DataSection } from '@/features/account/data-section';
import { DeleteAccountSection } from '@/features/account/delete-account-section';
import { StorageSection } from '@/features/account/storage-section';
import { useUser } from '@/features/credits/get-user';
import { useSession } from '@/lib/session';
import { t } from '@/lib/translate';

const WebhooksSection = lazyWithRetry(() => import('@/features/webhooks/webhooks-section'));

export default function AccountRoute() {
  const session = useSession();
  const user = useUser();
  const email = user.data?.email ?? session.email;
  return (
    <div className="page py-8 md:py-12">
      <PageHeader
        title={t('Account')}
        text={email && <span className="wrap-anywhere">{t('Signed in as {email}', { email })}</span>}
      />
      <StorageSection />
      <DataSection />
      <ApiKeysSection />
      <Suspense fallback={<Skeleton className="my-8 h-40" />}>
        <WebhooksSection />
      </Suspense>
      <DeleteAccountSection email={email} creditsLeft={user.data?.credits ?? null} />
    </div>
  );
}
