import type { ComponentProps } from 'react';
import { buttonStyle } from '@/components/button-style';
import { Icon } from '@/components/icon';
import { useUser } from '@/features/credits/get-user';
import { useSession } from '@/lib/session';
import { t } from '@/lib/translate';

export function AccountButton(props: ComponentProps<'button'>) {
  const session = useSession();
  const user = useUser();
  return (
    <button type="button" {...props} className={buttonStyle('quiet', 'sm', 'w-full max-w-48 xl:max-w-64')}>
      <span className="truncate">{user.data?.email ?? session.email ?? t('Account')}</span>
      <Icon name="chevron" className="size-4" />
    </button>
  );
}
