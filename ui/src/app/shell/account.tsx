import { lazy, Suspense, useState } from 'react';
import { AccountButton } from './account-button';

const loadMenu = () => import('./account-menu');
const AccountMenu = lazy(loadMenu);

/** The menu's code is fetched when somebody reaches for it, and stands where its button stood. */
export function Account() {
  const [isWanted, setWanted] = useState(false);
  const button = (
    <AccountButton
      aria-haspopup="menu"
      onPointerEnter={loadMenu}
      onFocus={loadMenu}
      onClick={() => setWanted(true)}
    />
  );
  return isWanted ? (
    <Suspense fallback={button}>
      <AccountMenu />
    </Suspense>
  ) : (
    button
  );
}
