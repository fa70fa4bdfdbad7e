import { lazy, Suspense, useState } from 'react';
import { AccountButton } from './account-button';

const loadMenu = () => import('./account-menu');
const AccountMenu = lazy(loadMenu);

/** The account button. The menu's code loads on hover or focus and then replaces the button. */
export function Account() {
  const [hasMenu, setHasMenu] = useState(false);
  const button = (
    <AccountButton
      aria-haspopup="menu"
      onPointerEnter={loadMenu}
      onFocus={loadMenu}
      onClick={() => setHasMenu(true)}
    />
  );
  return hasMenu ? (
    <Suspense fallback={button}>
      <AccountMenu />
    </Suspense>
  ) : (
    button
  );
}
