import { PageHeader } from '@/components/page-header';
import { ApiKeysSection } from '@/features/account/api-keys-section';
import { DataSection } from '@/features/account/data-section';
import { DeleteAccountSection } from '@/features/account/delete-account-section';
import { StorageSection } from '@/features/account/storage-section';
import { useUser } from '@/features/credits/get-user';
import { useSession } from '@/lib/session';
import { t } from '@/lib/translate';

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
      <DeleteAccountSection email={email} creditsLeft={user.data?.credits ?? null} />
    </div>
  );
}
