import { Suspense } from 'react';
import { lazyWithRetry } from '@/components/lazy-with-retry';
import { useOpenWhenLoaded } from '@/lib/use-open-when-loaded';
import { AccountButton } from './account-button';

const loadMenu = () => import('./account-menu');
const AccountMenu = lazyWithRetry(loadMenu, null);

/** The account button. The menu's code loads on hover or focus and then replaces the button. */
export function Account() {
  const menu = useOpenWhenLoaded(loadMenu);
  const button = (
    <AccountButton
      aria-haspopup="menu"
      onPointerEnter={menu.prefetch}
      onFocus={menu.prefetch}
      onClick={() => menu.open()}
    />
  );
  return menu.isLoaded ? (
    <Suspense fallback={button}>
      <AccountMenu />
    </Suspense>
  ) : (
    button
  );
}
