import * as Dialog from 'radix-ui/dialog';
import { useEffect, useEffectEvent, useRef } from 'react';
import { NavLink, useLocation } from 'react-router';
import { Button } from '@/components/button';
import { ButtonLink } from '@/components/button-link';
import { Icon } from '@/components/icon';
import { Promotion } from '@/features/credits/promotion';
import { classNames } from '@/lib/class-names';
import { paths } from '@/lib/paths';
import { useSession } from '@/lib/session';
import { type Message, t } from '@/lib/translate';
import { LanguageSelect } from './language-select';
import { menuLinks } from './navigation-links';

type MobileDrawerProps = {
  links: { to: string; label: Message }[];
  onClose: () => void;
  onClosed: () => void;
};

export default function MobileDrawer({ links, onClose, onClosed }: MobileDrawerProps) {
  const { isSignedIn, email, signOut } = useSession();
  const { key } = useLocation();
  const openedAt = useRef(key);
  const close = useEffectEvent(onClose);

  // The Back button leads to another page, which the drawer would cover.
  useEffect(() => {
    if (key !== openedAt.current) close();
  }, [key]);

  return (
    <Dialog.Root defaultOpen onOpenChange={(isOpen) => !isOpen && onClose()}>
      <Dialog.Portal>
        <Dialog.Overlay className="fixed inset-0 z-40 bg-scrim" />
        <Dialog.Content
          aria-describedby={undefined}
          onCloseAutoFocus={onClosed}
          className="fixed inset-y-0 right-0 z-50 flex w-80 max-w-[calc(100%-3rem)] flex-col gap-6 overflow-y-auto bg-surface p-4 shadow-overlay"
        >
          <div className="flex items-center justify-between gap-2 pl-3">
            <Dialog.Title className="min-w-0 truncate text-sm font-semibold text-soft">
              {isSignedIn ? (email ?? t('Your account')) : t('Menu')}
            </Dialog.Title>
            <Dialog.Close
              aria-label={t('Close menu')}
              className="grid size-11 shrink-0 place-items-center rounded-md hover:bg-sunken"
            >
              <Icon name="close" />
            </Dialog.Close>
          </div>
          <nav aria-label={t('Mobile')}>
            <ul className="grid gap-1">
              {[...links, ...(isSignedIn ? menuLinks : [])].map(({ to, label }) => (
                <li key={to}>
                  <NavLink
                    to={to}
                    onClick={onClose}
                    className={({ isActive }) =>
                      classNames(
                        'flex min-h-11 items-center rounded-md px-3 font-medium hover:bg-sunken',
                        isActive && 'bg-accent-wash text-accent',
                      )
                    }
                  >
                    {t(label)}
                  </NavLink>
                </li>
              ))}
            </ul>
          </nav>
          <div className="mt-auto grid gap-3 border-t border-line pt-4">
            <LanguageSelect />
            {isSignedIn ? (
              <>
                <ButtonLink to={paths.pricing} variant="secondary" onClick={onClose}>
                  <Promotion />
                </ButtonLink>
                <Button variant="quiet" onClick={signOut}>
                  {t('Logout')}
                </Button>
              </>
            ) : (
              <>
                <ButtonLink to={paths.login} variant="secondary" onClick={onClose}>
                  {t('Login')}
                </ButtonLink>
                <ButtonLink to={paths.signup} onClick={onClose}>
                  {t('SignUp')}
                </ButtonLink>
              </>
            )}
          </div>
        </Dialog.Content>
      </Dialog.Portal>
    </Dialog.Root>
  );
}
